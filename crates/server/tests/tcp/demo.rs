//! `semel demo`: every promise shown and kept, within fifteen seconds.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{run, said};

#[test]
fn the_demo_ends_with_0_within_fifteen_seconds_and_its_table_is_right() {
    let started = Instant::now();
    let output = run(&["demo", "--json"], &[]);
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(told["kept"], true);
    let promises = told["promises"].as_array().expect("a table");
    let seen = |start: &str| -> Vec<&str> {
        let lines = promises
            .iter()
            .filter(|line| line["promise"].as_str().is_some_and(|text| text.starts_with(start)));
        lines.map(|line| line["seen"].as_str().expect("a text")).collect()
    };
    let verdicts = ["ACCEPTED", "ACCEPTED", "DUPLICATE", "OUT_OF_ORDER", "ACCEPTED", "FENCED_EPOCH"];
    assert_eq!(seen("append "), verdicts, "the founding text's sequence");
    assert_eq!(seen("records stored by the six appends"), ["3"]);
    assert_eq!(seen("the payment is stored"), ["1 time(s)"]);
    let refused = seen("the zombie is refused: ");
    assert_eq!(refused.len(), 5, "on each of the five requests");
    assert!(refused.iter().all(|code| code.contains("47") || code.contains("90")), "{refused:?}");
    assert!(
        seen("transfer ").len() >= 3 && seen("transfer ").iter().all(|whole| *whole == "whole or not at all")
    );
    assert!(told["story"].as_array().is_some_and(|story| story.len() > promises.len()));
}

#[test]
fn the_demo_for_people_ends_with_0_within_fifteen_seconds_and_tells_the_same() {
    let started = Instant::now();
    let output = run(&["demo"], &[]);
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told = String::from_utf8_lossy(&output.stdout);
    let kept = told.lines().filter(|line| line.trim_start().starts_with("kept ")).count();
    assert!(kept >= 20 && !told.contains("BROKEN"), "{told}");
    for chapter in ["1. ", "2. ", "3. ", "4. "] {
        assert!(told.lines().any(|line| line.starts_with(chapter)), "{told}");
    }
}
