//! A limit on the size of files (`ulimit -f`): the system sends SIGXFSZ, which would end the process without a word.

/// Makes writing beyond the limit an error like a full disk.
pub(crate) fn becomes_an_error() {
    #[cfg(unix)]
    #[allow(unsafe_code)]
    // SAFETY: ignoring a signal has no handler; it is done before there are threads.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
