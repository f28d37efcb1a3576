//! Memory of the process and of the machine, where the system tells it.

/// Resident memory of the process.
pub(crate) fn resident() -> Option<u64> {
    kibibytes("/proc/self/status", "VmRSS:")
}

/// Memory that can be had: that of the machine, or of the control group where it has less.
pub(crate) fn available() -> Option<u64> {
    let of_machine = kibibytes("/proc/meminfo", "MemAvailable:");
    let number = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}"));
        text.ok()?.trim().parse().ok()
    };
    let of_group = number("max").map(|max| max.saturating_sub(number("current").unwrap_or(0)));
    of_machine.into_iter().chain(of_group).min()
}

/// The number behind a name, in bytes.
fn kibibytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_both() {
        assert!(resident().unwrap() > 1 << 20);
        assert!(available().unwrap() > 1 << 20);
    }
}
