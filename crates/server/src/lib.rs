//! What of the server other programs of the workspace need: the sync override, without which a store in another
//! process than `lazuli` would be less durable, and cheaper, than the product, and the allocator.

use mimalloc::MiMalloc;

pub mod sync_override;

/// sled copies a leaf with every few changes to it: libc's allocator took a third of the committer's time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
