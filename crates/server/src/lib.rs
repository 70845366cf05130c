//! What of the server other programs of the workspace need: the sync override, without which a store in another
//! process than `lazuli` would be less durable, and cheaper, than the product.

pub mod sync_override;
