//! A run as JUnit XML, which build servers read: a suite for Kafka's promises, one for the stricter ones.

use std::fmt::Write;

use super::{Tally, divide, text};
use crate::runner::{Finding, Verdict};

/// The document.
#[must_use]
pub fn document(findings: &[Finding]) -> String {
    let (kafka, stricter) = divide(findings);
    let mut xml =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"semel certify\">\n");
    suite(&mut xml, "kafka", &kafka);
    suite(&mut xml, "stricter", &stricter);
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, name: &str, findings: &[&Finding]) {
    let tally = Tally::of(findings.iter().copied());
    let (tests, failures, skipped) = (tally.all(), tally.broken, tally.not_run);
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">"
    );
    findings.iter().for_each(|finding| case(xml, finding));
    xml.push_str("  </testsuite>\n");
}

fn case(xml: &mut String, finding: &Finding) {
    let scenario = finding.scenario;
    let name = escape(&format!("{} {}", scenario.id, scenario.title));
    let (area, seconds) = (scenario.area.name(), finding.took.as_secs_f64());
    let _ = write!(xml, "    <testcase classname=\"{area}\" name=\"{name}\" time=\"{seconds:.3}\"");
    match &finding.verdict {
        Verdict::Kept => xml.push_str("/>\n"),
        Verdict::NotRun(reason) => {
            let _ = writeln!(xml, "><skipped message=\"{}\"/></testcase>", escape(reason));
        }
        Verdict::Broken(failure) => {
            let steps = finding.steps.iter().map(|step| format!("{} -> {}\n", step.sent, step.came));
            let (message, steps) = (escape(&failure.to_string()), escape(&steps.collect::<String>()));
            let line = escape(&text::broken(finding).unwrap_or_default());
            let _ = writeln!(xml, "><failure message=\"{message}\">{line}\n{steps}</failure></testcase>");
        }
    }
}

/// A text as XML; characters that XML has no form for are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            control if control.is_control() => {}
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Failure,
        scenario::{Area, Scenario},
    };

    const TRIED: Scenario =
        Scenario { id: "B01", title: "a < b", ..Scenario::kafka(Area::Dedup, |_| Ok(())) };

    #[test]
    fn what_is_not_run_is_skipped_and_what_is_broken_says_why() {
        let finding = |verdict| Finding {
            scenario: &TRIED,
            verdict,
            steps: Vec::new(),
            took: Duration::from_millis(5),
        };
        let xml = document(&[
            finding(Verdict::Kept),
            finding(Verdict::NotRun("no \"command\"".into())),
            finding(Verdict::Broken(Failure::broken("P", "45", "0 & stored"))),
        ]);
        assert!(xml.contains("<testsuite name=\"kafka\" tests=\"3\" failures=\"1\" skipped=\"1\">"), "{xml}");
        assert!(xml.contains("name=\"B01 a &lt; b\""), "{xml}");
        assert!(xml.contains("<skipped message=\"no &quot;command&quot;\"/>"), "{xml}");
        assert!(xml.contains("due 0 &amp; stored"), "{xml}");
    }
}
