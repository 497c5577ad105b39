//! Pairs of figures, and how they are shown.

use std::fmt::Write as _;

/// What issue a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Nothing is asked.
    None,
    /// Semel's figure over Kafka's, median of the pairs, at least.
    Ratio(f64),
    /// Semel's own median, at most.
    AtMost(f64),
}

/// One figure, measured on both sides pair by pair.
#[derive(Debug)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// Of what.
    pub unit: &'static str,
    /// What is asked.
    pub target: Target,
    /// Semel's.
    pub semel: Vec<f64>,
    /// Kafka's.
    pub kafka: Vec<f64>,
    /// Share of time in which some task waited for a CPU, before and after each pair, in percent.
    pub pressure: Vec<f64>,
}

/// Median, smallest, largest.
#[derive(Clone, Copy, Debug)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let odd = sorted.len() % 2 == 1;
        let median = if odd { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Some(Self { median, min, max })
    }

    fn text(spread: Option<Self>) -> String {
        spread.map_or("-".to_owned(), |Self { median, min, max }| {
            format!("{} [{}-{}]", short(median), short(min), short(max))
        })
    }

    fn json(spread: Option<Self>) -> String {
        spread.map_or("null".to_owned(), |Self { median, min, max }| {
            format!(r#"{{"median":{median:.4},"min":{min:.4},"max":{max:.4}}}"#)
        })
    }
}

impl Figure {
    /// A figure without values.
    pub fn new(name: &str, unit: &'static str, target: Target) -> Self {
        Self { name: name.to_owned(), unit, target, semel: vec![], kafka: vec![], pressure: vec![] }
    }

    fn ratio(&self) -> Option<Spread> {
        let ratios: Vec<_> = if self.semel.len() == self.kafka.len() {
            self.semel.iter().zip(&self.kafka).map(|(semel, kafka)| semel / kafka).collect()
        } else {
            // Not taken in pairs: only the medians can be compared.
            Spread::of(&self.semel)
                .zip(Spread::of(&self.kafka))
                .map(|(a, b)| a.median / b.median)
                .into_iter()
                .collect()
        };
        Spread::of(&ratios)
    }

    /// Whether the target is reached; nothing where nothing is asked or known.
    pub fn reached(&self) -> Option<bool> {
        match self.target {
            Target::None => None,
            Target::Ratio(due) => self.ratio().map(|found| found.median >= due),
            Target::AtMost(due) => Spread::of(&self.semel).map(|found| found.median <= due),
        }
    }

    fn row(&self) -> [String; 6] {
        let target = match self.target {
            Target::None => String::new(),
            Target::Ratio(due) => format!(">= {due}x"),
            Target::AtMost(due) => format!("<= {due} {}", self.unit),
        };
        let verdict = self.reached().map_or("", |reached| if reached { " reached" } else { " MISSED" });
        let ratio = self.ratio().map_or("-".to_owned(), |Spread { median, min, max }| {
            if min == max { format!("{median:.2}") } else { format!("{median:.2} [{min:.2}-{max:.2}]") }
        });
        [
            format!("{}, {}", self.name, self.unit),
            Spread::text(Spread::of(&self.semel)),
            Spread::text(Spread::of(&self.kafka)),
            ratio,
            target + verdict,
            Spread::text(Spread::of(&self.pressure)),
        ]
    }

    fn json(&self) -> String {
        let target = match self.target {
            Target::None => "null".to_owned(),
            Target::Ratio(due) => format!(r#"{{"ratio_at_least":{due}}}"#),
            Target::AtMost(due) => format!(r#"{{"at_most":{due}}}"#),
        };
        format!(
            r#"{{"name":"{}","unit":"{}","semel":{},"kafka":{},"ratio":{},"target":{target},"reached":{},"cpu_pressure_percent":{}}}"#,
            self.name,
            self.unit,
            Spread::json(Spread::of(&self.semel)),
            Spread::json(Spread::of(&self.kafka)),
            Spread::json(self.ratio()),
            self.reached().map_or("null".to_owned(), |reached| reached.to_string()),
            Spread::json(Spread::of(&self.pressure)),
        )
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.2}M", value / 1e6),
        v if v >= 1e4 => format!("{:.0}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// All figures as a table of Markdown.
pub fn table(figures: &[Figure]) -> String {
    let head =
        ["figure", "Semel, synced", "Kafka 4.4, unsynced", "Semel / Kafka", "target", "CPU pressure, %"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(figures.iter().map(Figure::row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
        if index == 0 {
            widths.iter().for_each(|width| text.push_str(&format!("|{}", "-".repeat(width + 2))));
            text.push_str("|\n");
        }
    }
    text
}

/// All figures as JSON.
pub fn json(figures: &[Figure]) -> String {
    let all: Vec<_> = figures.iter().map(Figure::json).collect();
    format!("[{}]", all.join(",\n "))
}
