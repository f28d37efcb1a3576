//! The numbers of answers k at which a ranking is measured.

use std::str::FromStr;

/// Cut-offs k of the metrics, ascending and distinct.
///
/// The default is 1, 3 and 5 for P, nDCG, PSP and F1, and 1, 3, 5, 10, 20 and 100 for R.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOffs {
    ranked: Vec<usize>,
    recall: Vec<usize>,
}

impl Default for CutOffs {
    fn default() -> Self {
        CutOffs {
            ranked: vec![1, 3, 5],
            recall: vec![1, 3, 5, 10, 20, 100],
        }
    }
}

impl CutOffs {
    /// The same cut-offs for all metrics; zeros are left out.
    pub fn at(ks: impl IntoIterator<Item = usize>) -> Self {
        let mut ks: Vec<usize> = ks.into_iter().filter(|&k| k != 0).collect();
        ks.sort_unstable();
        ks.dedup();
        CutOffs {
            ranked: ks.clone(),
            recall: ks,
        }
    }

    /// Cut-offs of P, nDCG, PSP and F1.
    pub fn ranked(&self) -> &[usize] {
        &self.ranked
    }

    /// Cut-offs of R.
    pub fn recall(&self) -> &[usize] {
        &self.recall
    }

    /// The highest cut-off; 0 without any.
    pub fn deepest(&self) -> usize {
        let last = |ks: &[usize]| ks.last().copied().unwrap_or(0);
        last(&self.ranked).max(last(&self.recall))
    }
}

/// Parses numbers as in `1,3,5,10,50`.
impl FromStr for CutOffs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse::<usize>() {
            Ok(k) if k > 0 => Ok(k),
            _ => Err(format!(
                "{text:?} is not an integer of at least 1: expected numbers of answers, as in 1,3,5,10"
            )),
        };
        let ks: Vec<usize> = text.split(',').map(number).collect::<Result<_, _>>()?;
        Ok(CutOffs::at(ks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_offs_are_positive_numbers_in_any_order() {
        let parsed: CutOffs = "10, 1,5,5".parse().unwrap();
        assert_eq!(parsed, CutOffs::at([1, 5, 10]));
        assert_eq!((parsed.ranked(), parsed.deepest()), (&[1, 5, 10][..], 10));
        assert_eq!(CutOffs::at([0]).deepest(), 0);
        for bad in ["", "0", "1,,3", "1;3", "-1", "1e3", "99999999999999999999"] {
            let problem = bad.parse::<CutOffs>().unwrap_err();
            assert!(problem.contains("at least 1"), "{bad}: {problem}");
        }
    }
}
