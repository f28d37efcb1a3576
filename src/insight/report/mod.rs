//! The report on a model: the paper's tables and figures as one self-contained page.
//!
//! [`Predictor::report`] computes the contents from a model and its data; slow results are kept beside the model's files.
//! [`Report::to_html`] writes the page, which needs no network.

mod cache;
mod data;
mod figures;
mod gather;
mod maps;
mod observations;
mod page;
mod quality;
mod sections;
mod times;
mod wording;

pub use times::{CheckpointTimes, PhaseTime, TrainingTimes};

use std::io::Write;
use std::path::Path;

use crate::data::{Dataset, Sink};
use crate::error::{Error, Result};
use crate::insight::svg;
use crate::predict::Predictor;

use self::data::ReportData;

/// The data of a report.
#[derive(Clone, Copy)]
pub struct ReportOptions<'a> {
    /// Test points, read with the labels of the model.
    pub test: &'a Dataset,
    /// Training points, for words and maps; they are left out without it.
    pub train: Option<&'a Dataset>,
    /// Directory of a model of the same data with fixed clusters, to compare with.
    pub fixed: Option<&'a Path>,
    /// Whether slow results are kept in the model's directory.
    pub cache: ReportCache,
    /// Called with the name of a step, the items done and all items.
    pub on_progress: Option<&'a ReportProgress<'a>>,
}

/// A callback that is given the name of a step, the items done and all items.
pub type ReportProgress<'a> = dyn Fn(&str, u64, u64) + Sync + 'a;

/// Where slow results of a report come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportCache {
    /// From the model's directory, if they were computed before.
    #[default]
    Kept,
    /// From computing them again; nothing is kept.
    Off,
}

/// A plot with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Name, as in a file name.
    pub name: &'static str,
    /// The plot, as a complete SVG document.
    pub svg: String,
}

/// The figures of what a model learned.
pub struct Report(ReportData);

impl Predictor {
    /// Computes the report on a model, which was loaded from this directory.
    ///
    /// # Errors
    /// If the data is not what the model was trained on, or a file of a model is damaged;
    /// [`Error::BadFile`](crate::Error::BadFile) if the model to compare with was not trained alike.
    pub fn report(
        &self,
        directory: impl AsRef<Path>,
        options: &ReportOptions<'_>,
    ) -> Result<Report> {
        let gatherer = gather::Gatherer {
            model: directory.as_ref(),
            options,
        };
        gatherer.gather(self).map(Report)
    }
}

impl Report {
    /// One HTML page with style, script and data.
    pub fn to_html(&self) -> String {
        page::write(&self.0)
    }

    /// Writes the page to a file, which appears when it is complete; returns its size in bytes.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<usize> {
        let path = path.as_ref();
        let html = self.to_html();
        let mut sink = Sink::create(path)?;
        let written = sink.write_all(html.as_bytes());
        written.map_err(|error| Error::io(path, "write", error))?;
        sink.finish()?;
        Ok(html.len())
    }

    /// Every plot of the page.
    pub fn figures(&self) -> Vec<Figure> {
        let plots = figures::all(&self.0).into_iter();
        plots
            .map(|(name, svg)| Figure {
                name,
                svg: svg::standalone(&svg),
            })
            .collect()
    }
}
