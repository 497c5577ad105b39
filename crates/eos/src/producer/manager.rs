//! The founding API.

use core::fmt;

/// The four outcomes of the founding text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In order, new: appended, recorded.
    Accepted,
    /// At or below what is accepted in this epoch: acknowledged, not appended.
    Duplicate,
    /// A gap: rejected.
    OutOfOrder,
    /// An older epoch than the one on file: a zombie, rejected.
    FencedEpoch,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted => "ACCEPTED",
            Self::Duplicate => "DUPLICATE",
            Self::OutOfOrder => "OUT_OF_ORDER",
            Self::FencedEpoch => "FENCED_EPOCH",
        })
    }
}

/// Producer state alone, without a broker around it.
#[derive(Clone, Debug, Default)]
pub struct ProducerStateManager {}
