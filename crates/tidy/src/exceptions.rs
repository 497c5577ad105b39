//! The list of exceptions: `path | rule | reason`, one a line, `#` for remarks.
//!
//! Purpose: a rule that has to be broken is broken in the open. Invariants: every line excuses at least one finding,
//! so the list shrinks when the code gets better. What it does not do: it excuses a rule in one file, never a folder.

use crate::{EXCEPTIONS_PATH, Rule, Violation};

/// One line of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Exception {
    line: usize,
    path: String,
    rule: Rule,
}

/// The list, with the findings about its own form.
#[derive(Clone, Default, Debug)]
pub struct Exceptions {
    entries: Vec<Exception>,
    malformed: Vec<Violation>,
}

/// Findings, sorted into what stands and what is excused.
#[derive(Clone, Default, Debug)]
pub struct Judged {
    /// What has to be mended.
    pub left: Vec<Violation>,
    /// What the list excuses.
    pub excused: Vec<Violation>,
}

impl Exceptions {
    /// Reads the list; a line that does not follow the form becomes a finding.
    pub fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(index + 1, line) {
                Ok(entry) => list.entries.push(entry),
                Err(message) => list.malformed.push(finding(index + 1, message)),
            }
        }
        list
    }

    /// Sorts `found` into what stands and what is excused; an exception that excuses nothing is added to what stands.
    pub fn judge(&self, found: Vec<Violation>) -> Judged {
        let (excused, mut left): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|violation| self.entries.iter().any(|entry| entry.excuses(violation)));
        let idle =
            self.entries.iter().filter(|entry| !excused.iter().any(|violation| entry.excuses(violation)));
        left.extend(idle.map(|entry| {
            finding(
                entry.line,
                format!("`{}` no longer breaks `{}`: remove the line", entry.path, entry.rule.name()),
            )
        }));
        left.extend(self.malformed.iter().cloned());
        Judged { left, excused }
    }
}

impl Exception {
    fn excuses(&self, violation: &Violation) -> bool {
        self.rule == violation.rule && self.path == violation.path
    }
}

fn parse_line(line: usize, text: &str) -> Result<Exception, String> {
    let fields: Vec<_> = text.splitn(3, '|').map(str::trim).collect();
    let [path, rule, reason] = fields[..] else {
        return Err("expected `path | rule | reason`".into());
    };
    if path.is_empty() || reason.is_empty() {
        return Err("the path or the reason is empty".into());
    }
    match Rule::from_name(rule) {
        Some(Rule::Exceptions) | None => Err(format!("there is no rule `{rule}` to break")),
        Some(rule) => Ok(Exception { line, path: path.into(), rule }),
    }
}

fn finding(line: usize, message: String) -> Violation {
    Violation { path: EXCEPTIONS_PATH.into(), line, rule: Rule::Exceptions, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_function() -> Violation {
        Violation { path: "a.rs".into(), line: 3, rule: Rule::FunctionLength, message: String::new() }
    }

    #[test]
    fn an_exception_excuses_its_rule_in_its_file_only() {
        let list = Exceptions::parse("# remark\n\na.rs | function-length | a table of all versions\n");
        let elsewhere = Violation { path: "b.rs".into(), ..long_function() };
        let judged = list.judge(vec![long_function(), elsewhere.clone()]);
        assert_eq!(judged.excused, [long_function()]);
        assert_eq!(judged.left, [elsewhere]);
    }

    #[test]
    fn an_exception_that_excuses_nothing_fails() {
        let left = Exceptions::parse("a.rs | unwrap | once needed").judge(vec![long_function()]).left;
        assert_eq!(left.len(), 2);
        assert_eq!((left[1].rule, left[1].line), (Rule::Exceptions, 1));
    }

    #[test]
    fn a_line_without_reason_or_with_an_unknown_rule_fails() {
        for text in ["a.rs | unwrap", "a.rs | unwrap | ", "a.rs | no-such-rule | x", "a.rs | exceptions | x"]
        {
            let left = Exceptions::parse(text).judge(Vec::new()).left;
            assert_eq!(left.len(), 1, "{text}");
            assert_eq!(left[0].rule, Rule::Exceptions, "{text}");
        }
    }
}
