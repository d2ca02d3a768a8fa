//! What this machine has: memory, cores and disk.

use std::path::Path;

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes that can still be allocated, within the limits of a container if there is one (page cache, which makes
/// room when asked, does not count as used).
pub fn available_memory() -> u64 {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    // A system that does not tell gets no check rather than a refusal.
    let Ok(system) = System::new_with_specifics(memory) else { return u64::MAX };
    let limit =
        system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    match system.available_memory().min(limit) {
        0 => u64::MAX,
        bytes => bytes,
    }
}

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

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// The most bytes that this process has had in memory at once; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
