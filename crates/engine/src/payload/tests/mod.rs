//! What holds of bodies, whatever happens to uploads, to the disk and to the process.

mod crashes;
mod healing;
pub(crate) mod support;
mod uploads;
