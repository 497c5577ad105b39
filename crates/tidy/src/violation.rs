//! What a rule says when it is broken.
//!
//! Purpose: one shape for every finding, and the closed list of rules. Invariants: the name of a rule, as it stands in
//! `exceptions.txt`, names one rule. What it does not do: no rule is checked here.

use core::fmt;

macro_rules! rules {
    ($($variant:ident $name:literal $about:literal;)*) => {
        /// The rules, each with the name that stands in front of its messages and in `exceptions.txt`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Rule { $(#[doc = $about] $variant,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it asks, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

rules! {
    Parse "parse" "Every Rust file can be read.";
    FunctionLength "function-length" "No function outside tests is longer than 70 lines.";
    FunctionMedian "function-median" "Half of all functions outside tests have at most 10 lines.";
    FileLength "file-length" "At most 500 lines outside tests in the core crates, 800 elsewhere.";
    Unwrap "unwrap" "No unwrap outside tests: expect states the invariant.";
    Unfinished "unfinished" "No unfinished work and no ignored test in the tree.";
    NoStd "no-std" "The core crates are no_std: no clock, file, thread, randomness or hash order.";
    Determinism "determinism" "The node is a step function: no clock, thread, file, socket or hash order in it.";
    Layering "layering" "A crate depends only on the crates below it.";
    Lints "lints" "Every crate takes the lints of the workspace.";
    Async "async" "Async lives in the server, and in programs that drive a server.";
    EpochComparison "epoch-comparison" "Producer epochs are compared only in the fence.";
    FenceCodes "fence-codes" "The two fencing codes are named only where refusals become wire codes.";
    HandlerName "handler-name" "A handler's file has the number and the name of its API.";
    ModuleDoc "module-doc" "Every module opens by saying what it is for.";
    ForeignWords "foreign-words" "The tree speaks of the project alone.";
    Invariants "invariants" "Code and docs/invariants.md name the same invariants and real files.";
    Exceptions "exceptions" "An exception has a path, a rule and a reason, and excuses something.";
}

impl Rule {
    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

/// One finding: where, against which rule, and what to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// The file, from the root of the repository, with `/`.
    pub path: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// The rule that is broken.
    pub rule: Rule,
    /// What is wrong and what is asked for, in one sentence.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: [{}] {}", self.path, self.rule.name(), self.message),
            line => write!(f, "{}:{line}: [{}] {}", self.path, self.rule.name(), self.message),
        }
    }
}
