//! Configuration: what was written, one plain struct per component.
//!
//! Fields are public, unknown keys are errors, and defaults are the paper's values unless the field's line says
//! otherwise.

mod calibration;
mod ranker;

pub use calibration::{CalibrationConfig, HoldOutConfig};
pub use ranker::{RankerConfig, RankerLoss};
