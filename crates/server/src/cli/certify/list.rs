//! `semel certify --list`: what would be tried, and on whose word.

use semel_certify::{
    Scenario,
    scenario::{Basis, Expectation, Needs},
};
use serde_json::{Value, json};

use crate::say;

/// Prints the scenarios, one a line or as one object.
pub fn print(scenarios: &[&Scenario], is_json: bool) {
    if is_json {
        let all: Vec<_> = scenarios.iter().map(|scenario| head(scenario)).collect();
        say::line(&json!({ "scenarios": all }).to_string());
        return;
    }
    for scenario in scenarios {
        let word = if scenario.is_stricter() { "stricter" } else { "kafka" };
        let (id, area, title) = (scenario.id, scenario.area, scenario.title);
        say::line(&format!("{id:<14} {area:<12} {word:<9} {title}"));
        if !scenario.left_out.is_empty() {
            say::line(&format!("{:<37} left out: {}", "", scenario.left_out));
        }
    }
}

/// A scenario's head as JSON.
pub fn head(scenario: &Scenario) -> Value {
    let (expectation, kafka) = match scenario.expectation {
        Expectation::Kafka => ("kafka", None),
        Expectation::Stricter { kafka, .. } => ("stricter", Some(kafka)),
    };
    let (needs, settings) = match scenario.needs {
        Needs::Nothing => ("nothing", &[] as &[_]),
        Needs::Settings(settings) => ("settings", settings),
        Needs::Restart(settings) => ("restart", settings),
        Needs::SmallDisk(disk) => ("small disk", disk.settings),
    };
    let settings: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    json!({
        "id": scenario.id,
        "title": scenario.title,
        "promise": scenario.promise,
        "area": scenario.area.name(),
        "source": scenario.source,
        "basis": scenario.basis.iter().map(|basis| Basis::tag(*basis)).collect::<Vec<_>>(),
        "versions": scenario.versions,
        "expectation": expectation,
        "kafka_answers": kafka,
        "needs": needs,
        "settings": settings,
        "left_out": scenario.left_out,
    })
}
