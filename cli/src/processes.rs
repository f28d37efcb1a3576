//! Processes that mpirun started together.
//!
//! A program is built for one MPI, so the calls are behind the feature `mpi`. Without it, a training that was started
//! several times says so instead of writing one model several times.

#[cfg(feature = "mpi")]
mod mpi;

use std::process::ExitCode;
use std::time::Duration;

use elias::tools::Communicator;

/// Variables in which Open MPI, MPICH and others say how many processes there are, and which one this is.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];
/// Time that a process waits before it reports an error that the first probably reports, too. The first ends all a
/// second after it has spoken.
const PATIENCE: Duration = Duration::from_secs(5);

/// This process among those started together.
pub(crate) struct Process {
    #[cfg(feature = "mpi")]
    joined: Option<mpi::Joined>,
}

impl Process {
    /// Joins the others, if there are any.
    pub(crate) fn join() -> anyhow::Result<Self> {
        #[cfg(feature = "mpi")]
        {
            let n_started = from_environment(&SIZES);
            let is_started = n_started.or(from_environment(&RANKS)).is_some();
            let joined = is_started.then(mpi::Joined::join).transpose()?;
            let process = Process { joined };
            let is_single = process
                .communicator()
                .is_none_or(|communicator| communicator.n_processes() == 1);
            if is_single && n_started.is_some_and(|n| n > 1) {
                let problem = "mpirun started this several times, but the processes do not see each \
                               other: use the mpirun of the MPI that it was built with";
                return Err(crate::ui::console::Misuse(problem.into()).into());
            }
            Ok(process)
        }
        #[cfg(not(feature = "mpi"))]
        {
            let n_processes = from_environment(&SIZES).unwrap_or(1);
            if n_processes > 1 || process() > 0 {
                let problem = "mpirun started this several times, but it was built without MPI: \
                               build it with --features mpi, or start it once";
                return Err(crate::ui::console::Misuse(problem.into()).into());
            }
            Ok(Process {})
        }
    }

    /// This process alone.
    pub(crate) fn alone() -> Self {
        Process {
            #[cfg(feature = "mpi")]
            joined: None,
        }
    }

    /// The connection to the other processes; none if this one was started alone.
    pub(crate) fn communicator(&self) -> Option<&dyn Communicator> {
        #[cfg(feature = "mpi")]
        return self.joined.as_ref().map(|joined| joined.communicator());
        #[cfg(not(feature = "mpi"))]
        None
    }

    /// Whether this process speaks for all.
    pub(crate) fn is_first(&self) -> bool {
        self.communicator()
            .is_none_or(|communicator| communicator.process() == 0)
    }

    /// The end of this process; if it failed, of all: they would wait for it.
    pub(crate) fn end(self, code: u8) -> ExitCode {
        #[cfg(feature = "mpi")]
        if let Some(joined) = self.joined
            && code != 0
        {
            joined.abort(code);
        }
        ExitCode::from(code)
    }
}

/// The number of this process, as its starter says; 0 if it was started alone.
pub(crate) fn process() -> usize {
    from_environment(&RANKS).unwrap_or(0)
}

/// Lets the first process report an error that all have.
pub(crate) fn let_the_first_report() {
    if process() > 0 {
        std::thread::sleep(PATIENCE);
    }
}

fn from_environment(names: &[&str]) -> Option<usize> {
    let mut values = names.iter().filter_map(|name| std::env::var(name).ok());
    values.find_map(|value| value.parse().ok())
}
