//! Compares two structs through their debug form, name by name, so that fields of one type cannot change places
//! unnoticed.

use std::{collections::BTreeMap, fmt::Debug, iter::Peekable, str::Chars};

/// Their name of a field, where ours is another one.
const RENAMED: &[(&str, &str)] = &[
    ("batch_index_error_message", "message"),
    ("enable_2_pc", "enable_two_phase_commit"),
    ("forgotten_topics_data", "forgotten_topics"),
    ("generation_id", "generation_id_or_member_epoch"),
    ("keep_prepared_txn", "keep_prepared_transaction"),
    ("ongoing_txn_producer_epoch", "ongoing_transaction_producer_epoch"),
    ("ongoing_txn_producer_id", "ongoing_transaction_producer_id"),
    ("partition_data", "partitions"),
    ("partition_responses", "partitions"),
    ("results_by_topic_v3_and_below", "results_by_topic"),
    ("topic_data", "topics"),
    ("v3_and_below_producer_epoch", "producer_epoch"),
    ("v3_and_below_producer_id", "producer_id"),
    ("v3_and_below_topics", "topics"),
    ("v3_and_below_transactional_id", "transactional_id"),
];

/// Fields of ours that are newer than the oracle.
const NEWER: &[&str] = &["cluster_id", "node_id", "topic_id", "transaction_version"];

/// A value as its debug form shows it, without the names of types.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    /// A number, a boolean, or a quoted string.
    Plain(String),
    List(Vec<Value>),
    Fields(BTreeMap<String, Value>),
}

impl Value {
    pub fn of(value: &impl Debug) -> Self {
        let text = format!("{value:?}");
        let mut parser = Parser(text.chars().peekable());
        let parsed = parser.value();
        assert_eq!(parser.0.next(), None, "all of {text} is understood");
        parsed
    }

    /// Same values under the same names; says where not.
    pub fn is_theirs(&self, theirs: &Self) -> Result<(), String> {
        match (self, theirs) {
            (Self::Fields(ours), Self::Fields(theirs)) => fields_agree(ours, theirs),
            (Self::List(ours), Self::List(theirs)) if ours.len() == theirs.len() => {
                ours.iter().zip(theirs).try_for_each(|(ours, theirs)| ours.is_theirs(theirs))
            }
            // Where a version lacks a field, ours is null and theirs may be empty; where it has it, the bytes tell.
            (Self::Null, Self::Plain(text)) if text == "\"\"" => Ok(()),
            _ if self == theirs => Ok(()),
            _ => Err(format!("{self:?} against {theirs:?}")),
        }
    }
}

fn fields_agree(ours: &BTreeMap<String, Value>, theirs: &BTreeMap<String, Value>) -> Result<(), String> {
    let renamed = |name: &str| RENAMED.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    let mut left = ours.clone();
    for (name, value) in theirs.iter().filter(|(name, _)| *name != "unknown_tagged_fields") {
        let name = if left.contains_key(name) { name } else { renamed(name).unwrap_or(name) };
        let ours = left.remove(name).ok_or(format!("ours lacks {name}"))?;
        ours.is_theirs(value).map_err(|difference| format!("{name}: {difference}"))?;
    }
    match left.keys().find(|name| !NEWER.contains(&name.as_str())) {
        Some(name) => Err(format!("theirs lacks {name}")),
        None => Ok(()),
    }
}

struct Parser<'a>(Peekable<Chars<'a>>);

impl Parser<'_> {
    fn value(&mut self) -> Value {
        self.spaces();
        match self.0.peek() {
            Some('[') => Value::List(self.between('[', ']', Self::value)),
            Some('"') => Value::Plain(self.quoted()),
            Some('{') => {
                assert!(self.fields().is_empty(), "only empty maps are expected");
                Value::Fields(BTreeMap::new())
            }
            _ => self.named(),
        }
    }

    /// A word, with what belongs to it: `word`, `Word(value)`, `Word { fields }`, `b"bytes"`.
    fn named(&mut self) -> Value {
        let mut word = String::new();
        while let Some(c) = self.0.next_if(|c| c.is_alphanumeric() || "_-".contains(*c)) {
            word.push(c);
        }
        self.spaces();
        match self.0.peek() {
            Some('"') if word == "b" => Value::Plain(self.quoted()),
            Some('{') => Value::Fields(self.fields().into_iter().collect()),
            Some('(') => {
                let mut inner = self.between('(', ')', Self::value);
                assert_eq!(inner.len(), 1, "wrappers hold one value");
                inner.remove(0)
            }
            _ if word == "None" => Value::Null,
            _ if is_uuid(&word) => uuid(&word),
            _ => Value::Plain(word),
        }
    }

    fn fields(&mut self) -> Vec<(String, Value)> {
        self.between('{', '}', |parser| {
            let mut name = String::new();
            while let Some(c) = parser.0.next_if(|c| *c != ':') {
                name.push(c);
            }
            parser.expect(':');
            (name, parser.value())
        })
    }

    fn between<T>(&mut self, open: char, close: char, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        self.expect(open);
        self.spaces();
        while self.0.next_if_eq(&close).is_none() {
            items.push(item(self));
            self.spaces();
            self.0.next_if_eq(&',');
            self.spaces();
        }
        items
    }

    /// A quoted string, left escaped.
    fn quoted(&mut self) -> String {
        let mut text = String::new();
        self.expect('"');
        loop {
            match self.0.next().expect("the string ends") {
                '"' => return format!("{text:?}"),
                '\\' => text.extend(['\\', self.0.next().expect("something is escaped")]),
                c => text.push(c),
            }
        }
    }

    fn spaces(&mut self) {
        while self.0.next_if_eq(&' ').is_some() {}
    }

    fn expect(&mut self, expected: char) {
        self.spaces();
        assert_eq!(self.0.next(), Some(expected));
    }
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.matches('-').count() == 4
}

/// As our topic ids show themselves: a list of bytes.
fn uuid(word: &str) -> Value {
    let digits: String = word.chars().filter(|c| *c != '-').collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    Value::List((0..32).step_by(2).map(|at| Value::Plain(byte(at).to_string())).collect())
}

#[test]
fn swapped_fields_are_noticed() {
    #[derive(Debug)]
    struct Pair {
        _low: i32,
        _high: Option<i32>,
    }
    let straight = Value::of(&Pair { _low: 1, _high: Some(2) });
    let swapped = Value::of(&Pair { _low: 2, _high: Some(1) });
    assert_eq!(straight.is_theirs(&straight), Ok(()));
    assert!(straight.is_theirs(&swapped).is_err());
}
