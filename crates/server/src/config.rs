//! Where settings come from: defaults, a file, the environment, flags, in rising order.
//!
//! Kafka's names wherever Kafka has the setting. A file may be TOML or a `server.properties`; in the environment
//! `num.partitions` is `SEMEL_NUM_PARTITIONS`. Every value knows its source, so that `semel config` can say it.

use std::{fs, path::Path};

use semel_broker::settings::{BROKER, Definition, SettingError, Settings, Source};

/// What is wrong with a setting.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("the configuration file {path} is not valid TOML: {reason}")]
    Syntax {
        /// The file.
        path: String,
        /// What the parser says.
        reason: String,
    },
    /// A line of `server.properties`, or a flag, without `=`.
    #[error("{place}: expected key=value, found {text:?}")]
    NotAPair {
        /// Where.
        place: String,
        /// What stands there.
        text: String,
    },
    /// A setting that nobody knows.
    #[error("{place}: no setting is called {name}{hint}; `semel config --list` names them all")]
    Unknown {
        /// Where.
        place: String,
        /// The name.
        name: String,
        /// The nearest name that exists.
        hint: String,
    },
    /// A value out of range or of the wrong kind.
    #[error("{place}: {reason}")]
    Invalid {
        /// Where.
        place: String,
        /// Which setting, which value, what is allowed.
        reason: String,
    },
}

/// The settings with their sources.
#[derive(Debug, Default)]
pub struct Config {
    settings: Settings,
    file: Option<String>,
    unused: Vec<String>,
}

impl Config {
    /// Gathers all sources. `flags` are `key=value` texts.
    ///
    /// # Errors
    /// [`ConfigError`] names the first setting that is unknown or invalid, and where it stands.
    pub fn gather(file: Option<&Path>, flags: &[String]) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        if let Some(path) = file {
            config.read_file(path)?;
        }
        config.read_environment(std::env::vars())?;
        for flag in flags {
            let (name, value) = pair(flag, "--set")?;
            config.put(name, value, Source::Flag, "--set")?;
        }
        Ok(config)
    }

    /// The broker's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What stands in a `server.properties` and has no effect here, for people.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// Each setting with its value and where it came from, in the order of the list.
    pub fn entries(&self) -> impl Iterator<Item = (&'static Definition, &str, String)> + '_ {
        BROKER.iter().filter_map(|known| {
            let (value, source) = self.settings.get(known.name)?;
            Some((known, value, self.shown(known.name, source)))
        })
    }

    fn shown(&self, name: &str, source: Source) -> String {
        match source {
            Source::Default => "default".to_owned(),
            Source::File => format!("file {}", self.file.as_deref().unwrap_or_default()),
            Source::Environment => format!("environment {}", environment_name(name)),
            Source::Flag => "flag".to_owned(),
        }
    }

    fn put(&mut self, name: &str, value: &str, source: Source, place: &str) -> Result<(), ConfigError> {
        self.settings.set(name, value, source).map_err(|error| refused(error, place))
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: shown.clone(), source })?;
        let pairs = if path.extension().is_some_and(|extension| extension == "properties") {
            self.properties(&text, &shown)?
        } else {
            toml_pairs(&text, &shown)?
        };
        pairs.iter().try_for_each(|(name, value)| self.put(name, value, Source::File, &shown))?;
        self.file = Some(shown);
        Ok(())
    }

    fn properties(&mut self, text: &str, path: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let mut pairs = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let place = format!("{path} line {number}");
            let (name, value) = pair(line, &place)?;
            match NOT_FROM_PROPERTIES.iter().find(|(known, _)| *known == name) {
                Some((_, instead)) => self.unused.push(format!("{place}: {name} has no effect{instead}")),
                None => pairs.push((name.to_owned(), value.to_owned())),
            }
        }
        Ok(pairs)
    }

    fn read_environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (variable, value) in variables {
            if let Some(known) = BROKER.iter().find(|known| environment_name(known.name) == variable) {
                self.put(known.name, &value, Source::Environment, &variable)?;
            }
        }
        Ok(())
    }
}

/// The environment variable of a setting.
pub fn environment_name(setting: &str) -> String {
    let name = setting.strip_prefix("semel.").unwrap_or(setting);
    format!("SEMEL_{}", name.replace(['.', '-'], "_").to_uppercase())
}

fn refused(error: SettingError, place: &str) -> ConfigError {
    let place = place.to_owned();
    match error {
        SettingError::Unknown { name } => {
            let hint = nearest(&name).map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
            ConfigError::Unknown { place, name, hint }
        }
        SettingError::Value { .. } => ConfigError::Invalid { place, reason: error.to_string() },
    }
}

/// The known name with the fewest differing characters, if few enough to be a slip.
fn nearest(name: &str) -> Option<&'static str> {
    let distances = BROKER.iter().map(|known| (distance(name, known.name), known.name));
    distances.min().filter(|(distance, _)| *distance <= 3).map(|(_, known)| known)
}

/// Levenshtein's distance.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, to) in right.bytes().enumerate() {
            let cost = diagonal + usize::from(from != to);
            diagonal = row[column + 1];
            row[column + 1] = cost.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

fn pair<'a>(text: &'a str, place: &str) -> Result<(&'a str, &'a str), ConfigError> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| ConfigError::NotAPair { place: place.to_owned(), text: text.to_owned() })?;
    Ok((name.trim(), value.trim()))
}

/// Settings of Kafka's own `server.properties` that a single node without a controller has no use for, or takes from
/// the command line.
const NOT_FROM_PROPERTIES: &[(&str, &str)] = &[
    ("process.roles", ""),
    ("controller.quorum.voters", ""),
    ("controller.listener.names", ""),
    ("inter.broker.listener.name", ""),
    ("log.dirs", "; use --data-dir"),
    ("listeners", "; use --listen"),
    ("advertised.listeners", "; use --advertise"),
];

fn toml_pairs(text: &str, path: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let mut pairs = Vec::new();
    flatten("", &table, &mut pairs);
    Ok(pairs)
}

/// `num.partitions = 3` in TOML is a table `num` with `partitions`: joined again here.
fn flatten(prefix: &str, table: &toml::Table, pairs: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, pairs),
            toml::Value::String(text) => pairs.push((name, text.clone())),
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => pairs.push((name, value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_the_environment_and_the_environment_beats_the_default() {
        let mut config = Config::default();
        let variable = ("SEMEL_NUM_PARTITIONS".to_owned(), "3".to_owned());
        config.read_environment([variable].into_iter()).expect("known");
        let shown = |config: &Config| {
            let found = config.entries().find(|(known, ..)| known.name == "num.partitions");
            found.map(|(_, value, source)| format!("{value} {source}"))
        };
        assert_eq!(shown(&config).as_deref(), Some("3 environment SEMEL_NUM_PARTITIONS"));
        config.put("num.partitions", "5", Source::Flag, "--set").expect("known");
        assert_eq!(shown(&config).as_deref(), Some("5 flag"));
    }

    #[test]
    fn an_unknown_setting_is_named_with_its_place_and_the_nearest_name() {
        let error = Config::gather(None, &["num.partition=3".to_owned()]).expect_err("unknown");
        let text = error.to_string();
        assert!(text.contains("--set") && text.contains("num.partitions"), "{text}");
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_setting_named() {
        let error = Config::gather(None, &["num.partitions=0".to_owned()]).expect_err("out of range");
        assert!(error.to_string().contains("num.partitions"), "{error}");
    }

    #[test]
    fn toml_keys_with_dots_and_properties_lines_name_the_same_settings() {
        let toml = toml_pairs("num.partitions = 3\n\"node.id\" = 7\n", "f").expect("valid");
        let text = "# comment\nnum.partitions=3\nnode.id = 7\nlisteners=PLAINTEXT://:9092\n";
        let mut config = Config::default();
        let lines = config.properties(text, "f").expect("valid");
        assert_eq!(config.unused(), ["f line 4: listeners has no effect; use --listen"]);
        let sorted = |mut pairs: Vec<(String, String)>| {
            pairs.sort();
            pairs
        };
        assert_eq!(sorted(toml), sorted(lines));
    }

    #[test]
    fn a_line_without_a_value_is_refused_with_its_number() {
        let mut config = Config::default();
        let error = config.properties("node.id=1\nnonsense\n", "server.properties").expect_err("no pair");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
