//! What this machine has: memory, cores and disk.

use std::path::Path;

pub use partwise::machine::{available_memory, cores};

/// Bytes that can still be written to the file system of `folder`; all that there can be where it does not tell.
pub fn free_space(folder: &Path) -> u64 {
    #[cfg(unix)]
    if let Ok(space) = rustix::fs::statvfs(folder) {
        return space.f_bavail.saturating_mul(space.f_frsize);
    }
    #[cfg(not(unix))]
    let _ = folder;
    u64::MAX
}
