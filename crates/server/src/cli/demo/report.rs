//! What is told on the way, and the table of what was promised and seen.

use serde_json::{Value, json};

use crate::say;

/// One promise.
struct Line {
    promise: String,
    due: String,
    seen: String,
}

/// The story and the table.
pub struct Report {
    json: bool,
    story: Vec<Value>,
    lines: Vec<Line>,
}

impl Report {
    /// An empty report; as JSON it is printed at the end, else as it goes.
    pub fn new(json: bool) -> Self {
        Self { json, story: Vec::new(), lines: Vec::new() }
    }

    /// A heading.
    pub fn chapter(&mut self, title: &str) {
        self.story.push(json!({ "chapter": title }));
        if !self.json {
            say::line(&format!("\n{title}"));
        }
    }

    /// A sentence.
    pub fn tell(&mut self, text: &str) {
        self.story.push(json!({ "text": text }));
        if !self.json {
            say::line(&format!("  {text}"));
        }
    }

    /// A request with its answer.
    pub fn exchange(&mut self, asked: &str, answered: &str) {
        self.story.push(json!({ "asked": asked, "answered": answered }));
        if !self.json {
            say::line(&format!("  {asked:<62} -> {answered}"));
        }
    }

    /// A promise: what was due and what was seen.
    pub fn promise(&mut self, promise: &str, due: &str, seen: &str) {
        self.lines.push(Line { promise: promise.to_owned(), due: due.to_owned(), seen: seen.to_owned() });
    }

    /// True if everything seen was due.
    pub fn is_kept(&self) -> bool {
        !self.lines.is_empty() && self.lines.iter().all(Line::is_kept)
    }

    /// Prints the table.
    pub fn finish(&self) {
        if self.json {
            let promises: Vec<_> = self.lines.iter().map(Line::json).collect();
            say::line(
                &json!({ "kept": self.is_kept(), "promises": promises, "story": self.story }).to_string(),
            );
            return;
        }
        say::line("\nPromised and seen");
        let width = self.lines.iter().map(|line| line.promise.len()).max().unwrap_or_default();
        for line in &self.lines {
            let mark = if line.is_kept() { "kept  " } else { "BROKEN" };
            let seen =
                if line.is_kept() { line.seen.clone() } else { format!("{} (due: {})", line.seen, line.due) };
            say::line(&format!("  {mark}  {:<width$}  {seen}", line.promise));
        }
    }
}

impl Line {
    fn is_kept(&self) -> bool {
        self.due == self.seen
    }

    fn json(&self) -> Value {
        json!({ "promise": self.promise, "due": self.due, "seen": self.seen, "kept": self.is_kept() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_promise_breaks_the_report_and_none_at_all_is_no_success() {
        let mut report = Report::new(true);
        assert!(!report.is_kept());
        report.promise("a", "1", "1");
        assert!(report.is_kept());
        report.promise("b", "1", "2");
        assert!(!report.is_kept());
    }
}
