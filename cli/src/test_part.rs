//! The part of the data that `elias train --hold-out` keeps aside to test on.

use elias::Dataset;

use crate::ui::console::Misuse;

/// The part of the data that is kept aside to test on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TestPart {
    /// This share of the points.
    Share(f64),
    /// A number of points.
    Points(usize),
}

impl TestPart {
    /// The parts of the data to train on and to test on.
    pub(crate) fn cut(self, data: &Dataset, seed: u64) -> anyhow::Result<[Dataset; 2]> {
        let n_all = data.n_points();
        let n_points = match self {
            TestPart::Share(share) => (share * n_all as f64).round() as usize,
            TestPart::Points(n_points) => n_points,
        };
        if n_points == 0 || n_points >= n_all {
            let problem = format!("--hold-out: {n_points} of {n_all} points cannot be kept aside");
            return Err(Misuse(problem).into());
        }
        Ok(data.cut_test(n_points, seed))
    }

    /// The part that an option names.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let part = match text.strip_suffix('%') {
            Some(percent) => percent
                .parse()
                .ok()
                .map(|percent: f64| TestPart::Share(percent / 100.0)),
            None => text.parse().ok().map(TestPart::Points),
        };
        let is_possible = |part: &TestPart| match *part {
            TestPart::Share(share) => share > 0.0 && share < 1.0,
            TestPart::Points(n_points) => n_points > 0,
        };
        part.filter(is_possible)
            .ok_or_else(|| "expected a share such as 10%, or a number of points".into())
    }
}
