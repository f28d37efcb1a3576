//! The memory of the machine.

/// Memory and swap, in bytes; `None` where the system does not report it.
pub(crate) fn memory_of_machine() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = |name: &str| -> Option<usize> {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let swap = kibibytes("SwapTotal:").unwrap_or(0);
    Some(1024 * (kibibytes("MemTotal:")? + swap))
}
