//! The memory, cores and disk of this machine.

use std::path::Path;

pub use partwise::machine::{available_memory, cores};

/// Free bytes on the file system of `folder`; `u64::MAX` if unknown.
pub fn free_space(folder: &Path) -> u64 {
    #[cfg(unix)]
    if let Ok(space) = rustix::fs::statvfs(folder) {
        return space.f_bavail.saturating_mul(space.f_frsize);
    }
    #[cfg(not(unix))]
    let _ = folder;
    u64::MAX
}

/// The peak resident memory of this process in bytes; 0 if unknown.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
