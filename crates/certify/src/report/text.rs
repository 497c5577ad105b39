//! A run as text: a table by area, then one line per broken promise.

use std::fmt::Write;

use super::{Tally, divide};
use crate::{
    runner::{Finding, Verdict},
    scenario::{Area, Expectation},
};

/// The report.
#[must_use]
pub fn report(findings: &[Finding]) -> String {
    let (kafka, stricter) = divide(findings);
    let mut text = String::new();
    section(&mut text, "Promises that Apache Kafka keeps", &kafka);
    if !stricter.is_empty() {
        text.push('\n');
        section(&mut text, "Stricter promises (Apache Kafka 4.4 does not keep them)", &stricter);
    }
    text
}

fn section(text: &mut String, title: &str, findings: &[&Finding]) {
    line(text, title);
    line(text, &format!("  {:<12} {:>5} {:>7} {:>8}", "area", "kept", "broken", "not run"));
    for area in Area::ALL {
        let of_area = || findings.iter().copied().filter(|finding| finding.scenario.area == area);
        let tally = Tally::of(of_area());
        if tally.all() > 0 {
            line(text, &row(area.name(), tally));
        }
    }
    line(text, &row("all", Tally::of(findings.iter().copied())));
    findings.iter().filter_map(|finding| broken(finding)).for_each(|broken| line(text, &broken));
    findings.iter().filter_map(|finding| not_run(finding)).for_each(|reason| line(text, &reason));
}

fn row(name: &str, tally: Tally) -> String {
    format!("  {name:<12} {:>5} {:>7} {:>8}", tally.kept, tally.broken, tally.not_run)
}

/// What is said of a broken promise: what was sent, what came, what was due, and why it matters.
#[must_use]
pub fn broken(finding: &Finding) -> Option<String> {
    let Verdict::Broken(failure) = &finding.verdict else { return None };
    let scenario = finding.scenario;
    let mut text = format!(
        "BROKEN  {} {}: {failure}. Why it matters: {}",
        scenario.id, scenario.title, scenario.promise
    );
    if let Expectation::Stricter { kafka, .. } = scenario.expectation {
        let _ = write!(text, " (Apache Kafka: {kafka})");
    }
    Some(text)
}

fn not_run(finding: &Finding) -> Option<String> {
    let Verdict::NotRun(reason) = &finding.verdict else { return None };
    Some(format!("NOT RUN {} {}: {reason}", finding.scenario.id, finding.scenario.title))
}

fn line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}
