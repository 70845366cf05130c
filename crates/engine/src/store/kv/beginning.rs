//! Whether a data directory ever had rows. To sled a log that is gone, or overwritten from its start, is a new one, and
//! bodies without rows are what a crash left behind: so much must not be forgotten because of one file.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::sled::{SledKv, named, sync_directory};
use crate::store::{OpenError, StoreError};

/// The file that says so.
const NAME: &str = "begun";

/// What is known of the rows of a data directory without looking at them.
#[derive(Debug)]
pub(crate) struct Beginning {
    directory: PathBuf,
}

impl Beginning {
    /// That of the data directory `directory`.
    pub(crate) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Refuses [`OpenError::RowsLost`] if there were rows once and are none now.
    pub(crate) fn check(&self, kv: &SledKv) -> Result<(), OpenError> {
        let begun = self.path().try_exists().map_err(|error| named(&self.path(), &error))?;
        if begun && kv.is_empty() {
            return Err(OpenError::RowsLost { directory: self.directory.join("rows") });
        }
        Ok(())
    }

    /// Notes that rows are on the disk by now.
    pub(crate) fn note(&self) -> Result<(), StoreError> {
        match File::create_new(self.path()).and_then(|file| file.sync_all()) {
            Ok(()) => sync_directory(&self.directory),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(named(&self.path(), &error)),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Space;
    use crate::store::kv::{Kv as _, Writes};

    #[test]
    fn rows_that_were_there_are_not_taken_for_none() {
        let scratch = tempfile::tempdir().unwrap();
        let beginning = Beginning::of(scratch.path());
        let open = || SledKv::open(&scratch.path().join("rows"), 1 << 20).unwrap();
        let kv = open();
        beginning.check(&kv).unwrap();
        let mut writes = Writes::default();
        writes.set(Space::Meta, vec![1].into(), Some(vec![2].into()));
        kv.apply(&writes).unwrap();
        kv.sync().unwrap();
        for _ in 0..2 {
            beginning.note().unwrap();
            beginning.check(&kv).unwrap();
        }
        drop(kv);
        beginning.check(&open()).unwrap();
        std::fs::remove_dir_all(scratch.path().join("rows")).unwrap();
        let answer = beginning.check(&open());
        assert!(matches!(&answer, Err(OpenError::RowsLost { directory }) if directory.ends_with("rows")), "{answer:?}");
    }
}
