//! A party's folder of state, which one process at a time uses.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::private;

/// A party's folder, which one process at a time uses.
pub struct StateFolder {
    /// Where it is.
    pub path: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// Makes or opens it, and locks it.
    pub fn open(folder: &Path) -> Result<Self> {
        private::make_folder(folder).map_err(Error::io(folder))?;
        let path = folder.join("lock");
        let lock = private::open(OpenOptions::new().write(true).create(true).truncate(false), &path);
        let lock = lock.map_err(Error::io(&path))?;
        #[cfg(unix)]
        {
            use rustix::fs::{FlockOperation, flock};
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(Error::file(
                    path,
                    "another process is using this state; wait for it, or stop it",
                ));
            }
        }
        Ok(StateFolder { path: folder.into(), _lock: lock })
    }

    /// The journal of the run that is under way.
    pub fn journal(&self) -> PathBuf {
        self.path.join("party.journal")
    }
}
