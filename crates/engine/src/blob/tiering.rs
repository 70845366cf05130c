//! Set Blob Tier. <https://learn.microsoft.com/rest/api/storageservices/set-blob-tier>

use crate::blob::feed::{Cause, Change};
use crate::blob::{OnBlob, state, tags};
use crate::engine::Engine;
use crate::error::Error;
use crate::lease::Leased;
use crate::store::Purpose;
use crate::tier::{Tier, TierState};

/// Sets the tier of a blob, snapshot or version, whose ETag stays; answers how it stands: there at once, or an archived
/// blob on its way. Of the conditions only that on tags is used; a lease need not be named.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, the lease refusals if a lease is named that is not
/// held, `CopyPending`, `TierNotForKind`, `TierTooSmall`, `TierLower` and `Rehydrating`.
pub async fn set(engine: &Engine, on: OnBlob, tier: Tier, high_priority: bool) -> Result<TierState, Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Free, move |tx| {
            let mut found = state::find(tx, &on)?;
            on.conditions.judge_tags(|| tags::read(tx, &found.tags().0))?;
            found.blob.lease.guard_read(tx.now(), on.lease, Leased::Blob)?;
            state::settled(&found.blob)?;
            state::own(found.part, &found.blob)?;
            tier.admit(found.blob.kind, found.blob.length)?;
            let now = tx.now();
            let old = found.blob.tier.map(|tier| tier.at(now).tier);
            let set = match found.blob.tier {
                Some(old) => old.set(tier, high_priority, now)?,
                None => TierState::new(tier, now),
            };
            found.blob.tier = Some(set);
            found.save(tx)?;
            let change = match set.rehydration {
                Some(way) => Change::of(Cause::Rehydration, &found.blob).other_tier(Some(way.target)),
                None => Change::of(Cause::Tier, &found.blob).other_tier(old),
            };
            change.part(found.part).record(tx, &policy, &on)?;
            Ok(set)
        })
        .await
}
