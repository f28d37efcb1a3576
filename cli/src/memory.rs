//! Memory: how the allocator returns it, and the peak of the process.

/// Makes the allocator return large blocks to the system as soon as they are freed.
///
/// By default, glibc keeps blocks of up to 32 MiB once one such block was freed, and the second of two trainings cannot
/// use the holes that the first one left: its peak was a fifth higher (debian-deps, 10,000 points).
pub(crate) fn return_what_is_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: a constant setting of the allocator, before there are threads.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Returns small blocks that were freed, too.
///
/// Memory that threads take piece by piece, such as rows of features, leaves holes that no matrix fits into.
pub(crate) fn return_small_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: it may be called at any time, by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Peak resident memory of the process so far, in bytes; None where the system does not report it.
pub(crate) fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
