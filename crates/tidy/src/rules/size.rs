//! How long functions and files may be.
//!
//! Purpose: a reader keeps a function on one screen and a file in mind. Invariants: tests don't count. What it does
//! not do: it says nothing about what belongs together.

use super::{at, is_core};
use crate::{File, Rule, RustSource, SizeReport, Tree, Violation};

const LONGEST_FUNCTION: usize = 70;
const MEDIAN_FUNCTION: usize = 10;
const LONGEST_CORE_FILE: usize = 500;
const LONGEST_FILE: usize = 800;

pub(super) fn function_length(tree: &Tree) -> Vec<Violation> {
    tree.rust().flat_map(|(file, source)| long_functions(file, source)).collect()
}

fn long_functions(file: &File, source: &RustSource) -> Vec<Violation> {
    let long = source.production_functions().filter(|function| function.length > LONGEST_FUNCTION);
    long.map(|function| {
        let message =
            format!("`{}` has {} lines, at most {LONGEST_FUNCTION}", function.name, function.length);
        at(file, function.line, Rule::FunctionLength, message)
    })
    .collect()
}

pub(super) fn function_median(tree: &Tree) -> Vec<Violation> {
    let report = SizeReport::of(tree);
    if report.percentile(50) <= MEDIAN_FUNCTION {
        return Vec::new();
    }
    let message = format!("{report}; the median is to be at most {MEDIAN_FUNCTION}");
    vec![Violation { path: "workspace".into(), line: 0, rule: Rule::FunctionMedian, message }]
}

pub(super) fn file_length(tree: &Tree) -> Vec<Violation> {
    tree.rust().filter_map(|(file, source)| long_file(file, source)).collect()
}

fn long_file(file: &File, source: &RustSource) -> Option<Violation> {
    let limit = if is_core(file) { LONGEST_CORE_FILE } else { LONGEST_FILE };
    let length = source.lines_outside_tests(file.lines().count());
    (length > limit).then(|| {
        at(
            file,
            0,
            Rule::FileLength,
            format!("{length} lines outside tests, at most {limit}: divide the file"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines_of;
    use super::*;

    fn function(lines: usize) -> String {
        format!("//! A.\nfn a() {{\n{}}}\n", "f();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_71_lines_is_too_long() {
        assert_eq!(lines_of(function_length, "crates/eos/src/a.rs", &function(71)), [2]);
        assert!(lines_of(function_length, "crates/eos/src/a.rs", &function(70)).is_empty());
        assert!(lines_of(function_length, "crates/eos/tests/a.rs", &function(71)).is_empty());
    }

    #[test]
    fn a_median_of_11_lines_is_too_long() {
        assert_eq!(lines_of(function_median, "crates/eos/src/a.rs", &function(11)), [0]);
        assert!(lines_of(function_median, "crates/eos/src/a.rs", &function(10)).is_empty());
    }

    #[test]
    fn a_core_file_has_500_lines_outside_tests_and_others_800() {
        let lines = |count: usize| {
            format!("{}#[cfg(test)]\nmod t {{\n{}}}\n", "use a;\n".repeat(count), "\n".repeat(900))
        };
        let too_long = |path: &str, count| !lines_of(file_length, path, &lines(count)).is_empty();
        assert!(too_long("crates/eos/src/a.rs", 501) && !too_long("crates/eos/src/a.rs", 500));
        assert!(too_long("crates/log/src/a.rs", 801) && !too_long("crates/log/src/a.rs", 800));
    }
}
