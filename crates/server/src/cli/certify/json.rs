//! A run as JSON; the fields stand in `docs/commands.md`.

use semel_certify::{
    Failure,
    report::{Tally, divide},
    runner::{Finding, Verdict},
};
use serde_json::{Value, json};

use super::list;

/// The document.
pub fn document(findings: &[Finding]) -> Value {
    let (kafka, stricter) = divide(findings);
    json!({
        "kafka": tally(Tally::of(kafka)),
        "stricter": tally(Tally::of(stricter)),
        "scenarios": findings.iter().map(scenario).collect::<Vec<_>>(),
    })
}

fn tally(tally: Tally) -> Value {
    json!({ "kept": tally.kept, "broken": tally.broken, "not_run": tally.not_run })
}

fn scenario(finding: &Finding) -> Value {
    let mut head = list::head(finding.scenario);
    let (verdict, reason) = match &finding.verdict {
        Verdict::Kept => ("kept", Value::Null),
        Verdict::Broken(failure) => ("broken", reason(failure)),
        Verdict::NotRun(reason) => ("not run", json!({ "text": reason })),
    };
    let took = u64::try_from(finding.took.as_millis()).unwrap_or(u64::MAX);
    let steps: Vec<_> =
        finding.steps.iter().map(|step| json!({ "sent": step.sent, "came": step.came })).collect();
    head["verdict"] = verdict.into();
    head["reason"] = reason;
    head["took_ms"] = took.into();
    head["steps"] = if matches!(finding.verdict, Verdict::Broken(_)) { steps.into() } else { json!([]) };
    head
}

fn reason(failure: &Failure) -> Value {
    match failure {
        Failure::Broken { sent, came, due } => {
            json!({ "text": failure.to_string(), "sent": sent, "came": came, "due": due })
        }
        Failure::Failed(text) | Failure::NotRun(text) => json!({ "text": text }),
    }
}
