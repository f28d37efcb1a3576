//! Reusable scratch objects that threads borrow and return.
//!
//! A rayon task has no memory of its own, and allocating large buffers per task is slow. A [`Pool`] keeps the objects
//! that no thread is using: at most as many as were ever borrowed at once.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Idle objects of one kind.
///
/// A borrower gets an arbitrary object, so results must not depend on its earlier contents.
pub(crate) struct Pool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Pool<T> {
    /// An empty pool.
    pub(crate) const fn new() -> Self {
        Pool {
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Runs `work` on an idle object, or on a new one if there is none, and returns the object to the pool.
    ///
    /// No lock is held while `work` runs. If it panics, its object is dropped.
    pub(crate) fn with<R>(&self, new: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        // A statement of its own, so that the lock is released before `new` and `work`.
        let idle = self.lock().pop();
        let mut object = idle.unwrap_or_else(new);
        let result = work(&mut object);
        self.lock().push(object);
        result
    }

    /// The lock. Pushing and popping leave the list valid even if another thread panicked, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool::new()
    }
}

/// A clone starts empty: idle objects hold nothing worth copying.
impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Pool::new()
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_idle = self.lock().len();
        f.debug_struct("Pool").field("n_idle", &n_idle).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn objects_are_reused() {
        let pool = Pool::new();
        assert_eq!(
            pool.with(|| vec![1], |v| std::mem::replace(v, vec![2])),
            [1]
        );
        assert_eq!(
            pool.with(|| unreachable!(), |v: &mut Vec<i32>| v.clone()),
            [2]
        );
        assert_eq!(format!("{pool:?}"), "Pool { n_idle: 1 }");
        assert_eq!(format!("{:?}", pool.clone()), "Pool { n_idle: 0 }");
    }

    #[test]
    fn nested_borrowers_get_different_objects() {
        let pool = Pool::new();
        let both = pool.with(|| 1, |outer| pool.with(|| 2, |inner| (*outer, *inner)));
        assert_eq!(both, (1, 2));
        assert_eq!(pool.lock().len(), 2);
    }

    #[test]
    fn no_two_threads_share_an_object() {
        let pool = Pool::new();
        let is_alone = (0..1000).into_par_iter().map(|_| {
            pool.with(
                || false,
                |in_use| {
                    let was_free = !std::mem::replace(in_use, true);
                    std::thread::yield_now();
                    *in_use = false;
                    was_free
                },
            )
        });
        assert!(is_alone.collect::<Vec<bool>>().iter().all(|&alone| alone));
        assert!(pool.lock().len() <= rayon::current_num_threads());
    }

    #[test]
    fn a_panic_drops_the_object_and_leaves_the_pool_usable() {
        let pool = Pool::new();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.with(|| 1, |_| panic!("expected by the test"))
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.with(|| 2, |n| *n), 2);
    }
}
