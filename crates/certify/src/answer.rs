//! What came to a request, to be held against what was due.
//!
//! Invariants: an answer that is not judged is a mistake, so the type is `must_use`; whoever judges it either goes on
//! or has a [`Failure`] that says what was sent, what came and what was due.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use semel_wire::WireCode;

use crate::{ClientError, Failure, scenario::Kept, session::Produced};

/// One exchange of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Who sent what.
    pub sent: String,
    /// What came.
    pub came: String,
}

impl Step {
    /// The same without a text that stands in it again and again.
    #[must_use]
    pub fn without(self, text: &str) -> Self {
        Self { sent: self.sent.replace(text, ""), came: self.came.replace(text, "") }
    }
}

/// How many exchanges are kept: the last ones say why a promise is broken, and a thorough run has millions.
const KEPT_MAX: usize = 10_000;

/// The last ten thousand exchanges of a scenario in their order, shared by everybody who acts in it.
#[derive(Clone, Default, Debug)]
pub struct Trace(Arc<Mutex<VecDeque<Step>>>);

impl Trace {
    /// Adds an exchange.
    pub fn add(&self, sent: &str, came: impl fmt::Display) {
        let step = Step { sent: sent.to_owned(), came: came.to_string() };
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The same question with the same answer again and again is told once.
        if steps.back() != Some(&step) {
            if steps.len() == KEPT_MAX {
                steps.pop_front();
            }
            steps.push_back(step);
        }
    }

    /// All that are kept by now.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// What came to a request: a code and what goes with it, or a failed exchange.
#[must_use = "an answer is to be judged"]
#[derive(Debug)]
pub struct Answer<T> {
    sent: String,
    came: Result<(WireCode, T), ClientError>,
}

impl<T> Answer<T> {
    /// An answer, noted down.
    pub(crate) fn noted(trace: &Trace, sent: String, came: Result<(WireCode, T), ClientError>) -> Self {
        match &came {
            Ok((code, _)) => trace.add(&sent, code),
            Err(error) => trace.add(&sent, error),
        }
        Self { sent, came }
    }

    /// The code has to be this one; gives what came with it.
    ///
    /// # Errors
    /// Another code came, or none.
    pub fn is(self, due: i16) -> Kept<T> {
        self.is_any(&[due]).map(|(_, value)| value)
    }

    /// The code has to be one of these; gives it, and what came with it.
    ///
    /// # Errors
    /// Another code came, or none.
    pub fn is_any(self, due: &[i16]) -> Kept<(i16, T)> {
        match self.came {
            Ok((code, value)) if due.contains(&code.get()) => Ok((code.get(), value)),
            Ok((code, _)) => Err(Failure::broken(self.sent, code, names(due))),
            Err(error) => Err(Failure::broken(self.sent, error, names(due))),
        }
    }

    /// A refusal: any known code but 0 and -1.
    ///
    /// # Errors
    /// 0, -1 or nothing came.
    pub fn is_refused(self) -> Kept<i16> {
        match self.came {
            Ok((code, _)) if !matches!(code.get(), 0 | -1) => Ok(code.get()),
            Ok((code, _)) => Err(Failure::broken(self.sent, code, "a definite refusal")),
            Err(error) => Err(Failure::broken(self.sent, error, "a definite refusal")),
        }
    }

    /// The connection has to be closed instead of an answer.
    ///
    /// # Errors
    /// An answer came, or the exchange failed otherwise.
    pub fn is_cut(self) -> Kept {
        match self.came {
            Err(error) if error.is_closed() => Ok(()),
            Ok((code, _)) => Err(Failure::broken(self.sent, code, "a closed connection")),
            Err(error) => Err(Failure::broken(self.sent, error, "a closed connection")),
        }
    }

    /// The code, whatever it is; `None` for a closed connection.
    #[must_use]
    pub fn code(&self) -> Option<i16> {
        self.came.as_ref().ok().map(|(code, _)| code.get())
    }

    /// The answer with its value made into another.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Answer<U> {
        Answer { sent: self.sent, came: self.came.map(|(code, value)| (code, make(value))) }
    }
}

impl Answer<Produced> {
    /// 0 with this base offset.
    ///
    /// # Errors
    /// Another code or offset came.
    pub fn is_stored_at(self, due: i64) -> Kept {
        let sent = self.sent.clone();
        let came = self.is(0)?.base_offset.get();
        if came == due {
            return Ok(());
        }
        Err(Failure::broken(sent, format!("NONE (0) at offset {came}"), format!("NONE (0) at offset {due}")))
    }
}

/// Codes by number and name, for people.
fn names(codes: &[i16]) -> String {
    let names: Vec<_> = codes.iter().map(|code| WireCode(*code).to_string()).collect();
    names.join(" or ")
}
