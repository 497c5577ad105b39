//! `semel-tidy [ROOT]`: checks the tree and prints what has to be mended; exit code 1 if there is anything.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command speaks to the person at the terminal"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use semel_tidy::{SizeReport, Tree, check};

fn main() -> ExitCode {
    let root = std::env::args_os().nth(1).map_or_else(repository_root, PathBuf::from);
    match Tree::read(&root) {
        Ok(tree) => verdict(&tree),
        Err(error) => {
            eprintln!("cannot read {}: {error}", root.display());
            ExitCode::from(2)
        }
    }
}

fn verdict(tree: &Tree) -> ExitCode {
    let violations = check(tree);
    for violation in &violations {
        println!("{violation}");
    }
    println!("{} files, {}", tree.files().len(), SizeReport::of(tree));
    if violations.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{} to mend; rules and exceptions: docs/testing.md", violations.len());
    ExitCode::FAILURE
}

fn repository_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
