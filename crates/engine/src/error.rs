//! The three ways to fail: refused, busy, storage.

use crate::refusal::Refusal;
use crate::store::StoreError;

/// Why an engine call did not succeed. In every case nothing was written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The caller's doing: the rules forbid it in the present state.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// Nobody's doing: try again.
    #[error("busy")]
    Busy,
    /// Ours: the disk, the store or a damaged row.
    #[error("storage failed")]
    Storage(#[source] StoreError),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy | StoreError::TooOld => Self::Busy,
            other => Self::Storage(other),
        }
    }
}
