//! Memory: the peak of the process, and sizes as text.

/// Peak resident memory of the process so far, in bytes; None where the system does not report it.
pub(crate) fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// A size with a unit.
pub(crate) fn size(n_bytes: usize) -> String {
    indicatif::HumanBytes(n_bytes as u64).to_string()
}
