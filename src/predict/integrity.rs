//! Whether a model's files are whole, which is found out while the model already answers.
//!
//! Hashing large files takes longer than loading should. A background thread does it; from the moment it finds damage,
//! predictions fail with an error that names the file.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::{Error, Result};

/// The state of a check that may still be running.
#[derive(Debug, Default)]
pub(crate) struct Integrity {
    state: Mutex<State>,
    is_known: Condvar,
    is_damaged: std::sync::atomic::AtomicBool,
    is_unwanted: std::sync::atomic::AtomicBool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Whole,
    Checking,
    Damaged(String),
}

use std::sync::atomic::Ordering::Relaxed;

impl Integrity {
    /// A check that has begun.
    pub(crate) fn checking() -> Self {
        Integrity {
            state: Mutex::new(State::Checking),
            ..Integrity::default()
        }
    }

    /// Notes the result of the check.
    pub(crate) fn conclude(&self, result: Result<()>) {
        let state = match result {
            Ok(()) => State::Whole,
            Err(error) => {
                self.is_damaged.store(true, Relaxed);
                State::Damaged(error.to_string())
            }
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.is_known.notify_all();
    }

    /// Fails once damage is known; costs one read of memory.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] naming the damaged file.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_damaged.load(Relaxed) {
            return self.wait();
        }
        Ok(())
    }

    /// Waits for the end of the check.
    ///
    /// # Errors
    /// As [`Integrity::check`].
    pub(crate) fn wait(&self) -> Result<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_checking = |state: &mut State| matches!(state, State::Checking);
        let waited = self.is_known.wait_while(state, is_checking);
        match &*waited.unwrap_or_else(PoisonError::into_inner) {
            State::Damaged(problem) => Err(Error::CannotPredict(problem.clone())),
            State::Whole | State::Checking => Ok(()),
        }
    }

    /// Tells the check that nobody needs its result any more.
    pub(crate) fn give_up(&self) {
        self.is_unwanted.store(true, Relaxed);
    }

    /// Whether the check may stop early.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.is_unwanted.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn damage_fails_predictions_from_then_on_and_waiting_ends_with_the_check() {
        let integrity = Arc::new(Integrity::checking());
        integrity.check().unwrap();
        let other = Arc::clone(&integrity);
        let waiting = std::thread::spawn(move || other.wait());
        integrity.conclude(Err(Error::CannotPredict("file x is damaged".into())));
        let message = waiting.join().unwrap().unwrap_err().to_string();
        assert!(message.contains("file x"), "{message}");
        assert!(integrity.check().is_err());

        let whole = Integrity::checking();
        whole.conclude(Ok(()));
        whole.wait().unwrap();
        Integrity::default().wait().unwrap();
    }
}
