//! `semel certify --record`: a run as a file that is kept, without what differs from run to run.

use semel_certify::{
    Failure,
    runner::{Finding, Verdict},
};
use serde_json::{Value, json};

/// The file's text.
pub fn text(findings: &[Finding]) -> String {
    let all: Vec<_> = findings.iter().map(scenario).collect();
    // A value that was just made can be written.
    serde_json::to_string_pretty(&json!({ "scenarios": all })).unwrap_or_default() + "\n"
}

fn scenario(finding: &Finding) -> Value {
    let id = finding.scenario.id;
    match &finding.verdict {
        Verdict::Kept => json!({ "id": id, "verdict": "kept" }),
        Verdict::NotRun(reason) => json!({ "id": id, "verdict": "not run", "reason": reason }),
        Verdict::Broken(Failure::Broken { sent, came, due }) => json!({
            "id": id, "verdict": "broken", "sent": steady(sent), "came": steady(came), "due": steady(due),
        }),
        Verdict::Broken(Failure::Failed(reason) | Failure::NotRun(reason)) => {
            json!({ "id": id, "verdict": "broken", "reason": steady(reason) })
        }
    }
}

/// A text without the producer ids of the run.
fn steady(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let follows_producer = |at: usize| at > 0 && words[at - 1].ends_with("producer");
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let steady = words
        .iter()
        .enumerate()
        .map(|(at, word)| if follows_producer(at) && is_number(word) { "P" } else { word });
    short(&steady.collect::<Vec<_>>().join(" "))
}

/// Longest evidence that is kept, in characters.
const LONGEST: usize = 300;

/// A long text by its start.
fn short(text: &str) -> String {
    let start: String = text.chars().take(LONGEST).collect();
    if start.len() < text.len() { start + " ..." } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_id_is_not_kept_and_everything_else_is() {
        assert_eq!(
            steady("EndTxn (producer 4544 epoch 0) v3 at 4544"),
            "EndTxn (producer P epoch 0) v3 at 4544"
        );
    }
}
