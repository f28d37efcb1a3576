//! The Rust half of the Python package: the module `elias_xmc._elias`.
//!
//! Thin: Python objects become the library's types, the library works without the interpreter's lock, and results
//! become Python objects. The Python half in `python/elias_xmc` has the documentation, the scikit-learn class and what
//! needs NumPy or SciPy. No panic crosses the border: it ends as an exception.

mod arrow;
mod border;
mod dataset;
mod errors;
mod events;
mod matrices;
mod metrics;
mod model;
mod points;
mod settings;
mod train;

/// The module that the Python half imports.
#[pyo3::pymodule]
mod _elias {
    #[pymodule_export]
    use crate::arrow::{ArrowBatch, predict_arrow};
    #[pymodule_export]
    use crate::dataset::Dataset;
    #[pymodule_export]
    use crate::metrics::metrics;
    #[pymodule_export]
    use crate::model::{Core, learn, merge};
    #[pymodule_export]
    use crate::settings::{commented_config, setting_keys};
    #[pymodule_export]
    use crate::train::train;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
