//! A party's state folder, which only one process may use at a time.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::private;

/// A locked state folder.
pub struct StateFolder {
    /// Its path.
    pub path: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// Creates or opens the folder and locks it.
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

    /// The journal of the run in progress.
    pub fn journal(&self) -> PathBuf {
        self.path.join("party.journal")
    }
}
