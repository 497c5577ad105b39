//! One setting: its name, type, default and range.

use super::SettingError;

/// The type of a value, as DescribeConfigs reports it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A 32-bit number in a range, both ends included.
    Int(i64, i64),
    /// A 64-bit number in a range, both ends included.
    Long(i64, i64),
    /// A fraction in a range, both ends included.
    Double(f64, f64),
    /// Any text.
    Text,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A comma-separated list of these; of anything if none are named.
    List(&'static [&'static str]),
}

/// Does the broker act on a setting yet?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It acts on it.
    Active,
    /// It is kept and reported, and changes nothing yet.
    StoredOnly,
}

/// One setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Definition {
    /// Its name; Kafka's where Kafka has the setting.
    pub name: &'static str,
    /// Its type and range.
    pub kind: Kind,
    /// Its default; `None` if it may be unset.
    pub default: Option<&'static str>,
    /// Does the broker act on it?
    pub effect: Effect,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

impl Definition {
    /// Is this text a value of the setting?
    ///
    /// # Errors
    /// [`SettingError::Value`] says what was expected.
    pub fn check(&self, value: &str) -> Result<(), SettingError> {
        if self.kind.holds(value.trim()) {
            return Ok(());
        }
        let expected = self.kind.expected();
        Err(SettingError::Value { name: self.name, value: value.to_owned(), expected })
    }

    /// What its values are, in words.
    #[must_use]
    pub fn expected(&self) -> String {
        self.kind.expected()
    }

    /// The type's number in DescribeConfigs (upstream `ConfigDef.Type`).
    #[must_use]
    pub const fn wire_type(&self) -> i8 {
        match self.kind {
            Kind::Boolean => 1,
            Kind::Text | Kind::Choice(_) => 2,
            Kind::Int(..) => 3,
            Kind::Long(..) => 5,
            Kind::Double(..) => 6,
            Kind::List(_) => 7,
        }
    }
}

impl Kind {
    fn holds(self, value: &str) -> bool {
        match self {
            Self::Boolean => value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false"),
            Self::Int(least, most) | Self::Long(least, most) => {
                value.parse::<i64>().is_ok_and(|number| (least..=most).contains(&number))
            }
            Self::Double(least, most) => {
                value.parse::<f64>().is_ok_and(|number| (least..=most).contains(&number))
            }
            Self::Text => true,
            Self::Choice(choices) => choices.contains(&value),
            Self::List(choices) => {
                choices.is_empty() || value.split(',').all(|part| choices.contains(&part.trim()))
            }
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Boolean => "true or false".to_owned(),
            Self::Int(least, most) | Self::Long(least, most) => format!("a number from {least} to {most}"),
            Self::Double(least, most) => format!("a fraction from {least} to {most}"),
            Self::Text => "a text".to_owned(),
            Self::Choice(choices) => format!("one of {}", choices.join(", ")),
            Self::List([]) => "a list".to_owned(),
            Self::List(choices) => format!("a list of {}", choices.join(", ")),
        }
    }
}
