//! Numbers as they stand on the wire, where a negative one means "none" or is nonsense.
//!
//! Purpose: `semel-types` holds valid values only, yet a handler must be able to tell `-1` (absent) from `-2`
//! (nonsense) to give Kafka's answer. Each type here is a transparent number with a way to the valid one.

use core::fmt;

use semel_types::{CoordinatorEpoch, ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId};

use crate::field::field_through;

macro_rules! raw {
    ($(#[$doc:meta])* $name:ident($inner:ty) of $valid:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The wire's "none", `-1`.
            pub const NONE: Self = Self(-1);

            /// The number as it stands on the wire.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }

            /// The valid value; `None` for every negative number.
            #[must_use]
            pub const fn known(self) -> Option<$valid> {
                if self.0 < 0 { None } else { Some(<$valid>::new(self.0)) }
            }

            /// True below `-1`: neither a value nor "none".
            #[must_use]
            pub const fn is_nonsense(self) -> bool {
                self.0 < -1
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl From<$valid> for $name {
            fn from(value: $valid) -> Self {
                Self(value.get())
            }
        }

        impl From<Option<$valid>> for $name {
            fn from(value: Option<$valid>) -> Self {
                value.map_or(Self::NONE, Self::from)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        field_through!($name, $inner, $name, $name::get);
    };
}

raw! {
    /// A producer id, or `-1`.
    RawProducerId(i64) of ProducerId
}
raw! {
    /// A producer epoch, or `-1`.
    RawProducerEpoch(i16) of ProducerEpoch
}
raw! {
    /// An offset, or `-1`.
    RawOffset(i64) of Offset
}
raw! {
    /// A leader epoch, or `-1`.
    RawLeaderEpoch(i32) of LeaderEpoch
}
raw! {
    /// A transaction coordinator's epoch, or `-1`.
    RawCoordinatorEpoch(i32) of CoordinatorEpoch
}

/// An error code as it stands on the wire; may be one that Semel does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct WireCode(pub i16);

impl WireCode {
    /// No error.
    pub const NONE: Self = Self(0);

    /// The number.
    #[must_use]
    pub const fn get(self) -> i16 {
        self.0
    }

    /// The code by name, if Semel knows it.
    #[must_use]
    pub const fn known(self) -> Option<ErrorCode> {
        ErrorCode::from_wire(self.0)
    }

    /// True for anything but 0.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 != 0
    }
}

impl From<ErrorCode> for WireCode {
    fn from(code: ErrorCode) -> Self {
        Self(code.get())
    }
}

impl PartialEq<ErrorCode> for WireCode {
    fn eq(&self, other: &ErrorCode) -> bool {
        self.0 == other.get()
    }
}

impl fmt::Display for WireCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(code) => fmt::Display::fmt(&code, f),
            None => write!(f, "unknown code {}", self.0),
        }
    }
}

field_through!(WireCode, i16, WireCode, WireCode::get);
