//! The resources of this machine: memory and cores.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes that can still be allocated, within the limits of a container if there is one (page cache, which makes
/// room when asked, does not count as used).
pub fn available_memory() -> u64 {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let limit =
        system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    // On systems that do not report their memory, the check is skipped.
    match system.available_memory().min(limit) {
        0 => u64::MAX,
        bytes => bytes,
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}
