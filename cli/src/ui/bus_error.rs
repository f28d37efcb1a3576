//! A file of a model that shrinks while it is mapped: the system sends SIGBUS, which becomes an error message.
//!
//! The handler does only what POSIX allows in one: it finds the file in `/proc/self/maps`, writes the message, and asks
//! the process to end as after Ctrl-C, so that no incomplete file stays.

/// Explains the signal from now on, where the system can tell the file.
pub(crate) fn explain() {
    #[cfg(target_os = "linux")]
    linux::install();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicBool, Ordering};

    use libc::{c_int, c_void, siginfo_t};

    use crate::ui::interrupt;

    /// Room for a line of the table of mappings with the longest path.
    type Line = [u8; 4096 + 128];

    pub(super) fn install() {
        #[allow(unsafe_code)]
        // SAFETY: the structure is plain data, for which zeros are valid, and is filled as sigaction(2) says; the
        // handler has the signature that SA_SIGINFO needs and calls only async-signal-safe functions.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    }

    extern "C" fn on_signal(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        static IS_REPORTED: AtomicBool = AtomicBool::new(false);
        #[allow(unsafe_code)]
        // SAFETY: the system passes a valid structure, and SIGBUS has an address.
        let address = unsafe { (*info).si_addr() } as usize;
        let mut line = [0; size_of::<Line>()];
        if !IS_REPORTED.swap(true, Ordering::Relaxed) {
            let Some(path) = file_at(address, &mut line) else {
                #[allow(unsafe_code)]
                // SAFETY: async-signal-safe. The signal comes again when the handler returns, and ends the process.
                unsafe {
                    libc::signal(libc::SIGBUS, libc::SIG_DFL);
                }
                return;
            };
            write(b"error: ");
            write(path);
            write(b": the file became shorter while it was in use: restore the model, and never change one in place\n");
            interrupt::fail_with(1);
            #[allow(unsafe_code)]
            // SAFETY: async-signal-safe.
            unsafe {
                libc::kill(libc::getpid(), libc::SIGTERM);
            }
        }
        loop {
            #[allow(unsafe_code)]
            // SAFETY: async-signal-safe. Other threads end the process; this one has nothing to read.
            unsafe {
                libc::pause();
            }
        }
    }

    /// The path of the file that is mapped at an address.
    fn file_at(address: usize, line: &mut Line) -> Option<&[u8]> {
        #[allow(unsafe_code)]
        // SAFETY: async-signal-safe; the path ends in a zero.
        let table = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY) };
        let mut n_bytes = 0;
        loop {
            let rest = line.get_mut(n_bytes..)?;
            #[allow(unsafe_code)]
            // SAFETY: async-signal-safe; at most this many bytes are written.
            let n_read = unsafe { libc::read(table, rest.as_mut_ptr().cast(), rest.len()) };
            n_bytes += usize::try_from(n_read).ok().filter(|&n_read| n_read > 0)?;
            while let Some(end) = line[..n_bytes].iter().position(|&byte| byte == b'\n') {
                if is_at(&line[..end], address) {
                    let start = line[..end].iter().position(|&byte| byte == b'/')?;
                    return line.get(start..end);
                }
                line.copy_within(end + 1..n_bytes, 0);
                n_bytes -= end + 1;
            }
        }
    }

    /// Whether a line, `first-end …`, has the address.
    fn is_at(line: &[u8], address: usize) -> bool {
        let mut bounds = line.split(|&byte| byte == b'-' || byte == b' ');
        let mut bound = || {
            let digits = std::str::from_utf8(bounds.next()?).ok()?;
            usize::from_str_radix(digits, 16).ok()
        };
        let (first, end) = (bound(), bound());
        first.is_some_and(|first| first <= address) && end.is_some_and(|end| address < end)
    }

    fn write(bytes: &[u8]) {
        #[allow(unsafe_code)]
        // SAFETY: async-signal-safe; the pointer and the length are those of a slice.
        unsafe {
            libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len());
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_line_of_the_table_has_the_addresses_from_its_first_to_before_its_end() {
            let line = b"7f00-7f20 r--s 00000000 08:01 17    /models/a file";
            assert!(is_at(line, 0x7f00) && is_at(line, 0x7f1f));
            assert!(!is_at(line, 0x7eff) && !is_at(line, 0x7f20));
            assert!(!is_at(b"", 0) && !is_at(b"x-y", 0));
        }
    }
}
