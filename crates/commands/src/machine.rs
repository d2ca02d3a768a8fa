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

/// The most bytes that this process has had in memory at once; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
