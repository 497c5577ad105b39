//! The only place that writes to the terminal.

use std::{
    error::Error,
    io::{self, Write},
};

/// One line on standard output. A closed pipe is nobody's error.
pub fn line(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// One line on standard output at once; false if nobody reads any more.
pub fn try_line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// A remark on standard error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "semel: {text}");
}

/// An error on standard error, with its causes.
pub fn error(error: &dyn Error) {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    let _ = writeln!(io::stderr().lock(), "semel: {text}");
}
