//! Sizes of functions, as figures to look at.
//!
//! Purpose: shows the drift before the limit is met. What it does not do: the limits stand in `rules::size`.

use core::fmt;

use crate::Tree;

/// Lengths of the functions outside tests, in lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SizeReport {
    lengths: Vec<usize>,
}

impl SizeReport {
    /// Measures the functions of `tree`.
    pub fn of(tree: &Tree) -> Self {
        let functions = tree.rust().flat_map(|(_, source)| source.production_functions());
        let mut lengths: Vec<_> = functions.map(|function| function.length).collect();
        lengths.sort_unstable();
        Self { lengths }
    }

    /// How many functions there are.
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// The length that `percent` of 100 functions don't exceed; 0 if there are none.
    pub fn percentile(&self, percent: usize) -> usize {
        let rank = (self.lengths.len() * percent).div_ceil(100).max(1);
        self.lengths.get(rank - 1).copied().unwrap_or(0)
    }
}

impl fmt::Display for SizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, p95, longest] = [50, 95, 100].map(|percent| self.percentile(percent));
        write!(f, "{} functions: median {median} lines, p95 {p95}, longest {longest}", self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lengths_that_occur() {
        let report = SizeReport { lengths: vec![1, 2, 3, 40] };
        assert_eq!([0, 50, 95, 100].map(|percent| report.percentile(percent)), [1, 2, 40, 40]);
        assert_eq!(SizeReport::default().percentile(50), 0);
    }
}
