//! A decision of process 0, which all processes follow: it alone has somebody who can ask for a stop.

use std::ops::ControlFlow;

use super::Communicator;
use crate::error::{Error, Result};
use crate::events::{Event, Observer};

impl dyn Communicator + '_ {
    /// Broadcasts the flag of process 0; those of the others do not count.
    pub(crate) fn first_says(&self, flag: bool) -> bool {
        if self.is_alone() {
            return flag;
        }
        let own = [u8::from(flag && self.is_first())];
        self.all_gather(&own)[0] == [1]
    }

    /// Stops all processes if the first is to stop. Other errors are those of all processes, which have the same numbers.
    ///
    /// # Errors
    /// [`Error::Stopped`], and the error given if it is another.
    pub(crate) fn agree(&self, emitted: Result<()>) -> Result<()> {
        match emitted {
            Ok(()) | Err(Error::Stopped) if self.first_says(emitted.is_err()) => {
                Err(Error::Stopped)
            }
            Ok(()) | Err(Error::Stopped) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// An observer of events that all processes emit together, which stops all of them if the first is asked to.
    pub(crate) fn observer<'a>(&'a self, observer: &'a dyn Observer) -> impl Observer + 'a {
        |event: &Event| {
            let is_asked = observer.on_event(event).is_break();
            if self.first_says(is_asked) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::communicator::threads;
    use crate::events::{Event, emit};

    #[test]
    fn process_zero_decides() {
        for flag in [false, true] {
            let answers = threads::run(3, |communicator| {
                communicator.first_says(flag == communicator.is_first())
            });
            assert_eq!(answers, [flag; 3]);
        }
    }

    #[test]
    fn all_processes_stop_when_the_first_is_asked_to_and_only_then() {
        for asked in 0..3 {
            let stopped = threads::run(3, |communicator| {
                let own = |_: &Event| {
                    if communicator.process() == asked {
                        std::ops::ControlFlow::Break(())
                    } else {
                        std::ops::ControlFlow::Continue(())
                    }
                };
                let event = Event::CheckpointsDamaged;
                let agreed = communicator.agree(emit(&own, event.clone())).is_err();
                let emitted = emit(&communicator.observer(&own), event).is_err();
                [agreed, emitted]
            });
            assert_eq!(stopped, [[asked == 0; 2]; 3]);
        }
    }
}
