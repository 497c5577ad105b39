//! What can be wrong with bytes, and with a value that should become bytes.
//!
//! Purpose: every failure names the field and the byte it was found at. Invariant: no error carries memory of its
//! own, so that a flood of bad frames costs nothing.

use core::fmt;

/// Why a frame, or a part of it, could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// `Struct.field`, or the name of the header or section that was being read.
    pub field: &'static str,
    /// Byte position within the frame at which the offending value starts.
    pub position: usize,
    /// What was wrong there.
    pub kind: DecodeErrorKind,
}

/// The kinds of [`DecodeError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeErrorKind {
    /// The value needs more bytes than are left.
    Truncated {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// A length or count below the null marker `-1`.
    NegativeLength(i64),
    /// A string of more than 32767 bytes, in whatever version (upstream's generated readers refuse it too).
    TextTooLong {
        /// Its length.
        length: usize,
    },
    /// Null where this version has none.
    UnexpectedNull,
    /// An array claims more elements than the remaining bytes can hold.
    CountBeyondFrame {
        /// Elements claimed.
        count: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// The decoded form would be larger than the frame allows (see [`crate::Reader`]).
    TooDense,
    /// A variable-length integer longer than its type.
    VarintTooLong,
    /// A tagged field whose content does not fill its announced size.
    TagSizeMismatch {
        /// The field's tag.
        tag: u32,
    },
    /// The version lies outside what this API has.
    UnsupportedVersion {
        /// The version asked for.
        version: i16,
    },
    /// Bytes after the end of the message.
    TrailingBytes {
        /// How many.
        count: usize,
    },
}

impl DecodeError {
    /// An error whose field is not known yet; the enclosing struct fills it in.
    pub(crate) const fn at(position: usize, kind: DecodeErrorKind) -> Self {
        let field = "";
        Self { field, position, kind }
    }

    /// Names the field, unless an inner struct has done so already.
    pub(crate) const fn named(mut self, field: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = field;
        }
        self
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => write!(f, "needs {needed} bytes, {left} left"),
            Self::NegativeLength(length) => write!(f, "length {length}"),
            Self::TextTooLong { length } => write!(f, "string of {length} bytes"),
            Self::UnexpectedNull => f.write_str("null is not allowed"),
            Self::CountBeyondFrame { count, left } => write!(f, "{count} elements cannot be in {left} bytes"),
            Self::TooDense => f.write_str("the decoded form exceeds the memory this frame may use"),
            Self::VarintTooLong => f.write_str("variable-length integer too long"),
            Self::TagSizeMismatch { tag } => write!(f, "tagged field {tag} does not fill its size"),
            Self::UnsupportedVersion { version } => write!(f, "version {version} is not supported"),
            Self::TrailingBytes { count } => write!(f, "{count} bytes after the end"),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.field, self.position, self.kind)
    }
}

impl core::error::Error for DecodeError {}

/// Why a message could not be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodeError {
    /// `Struct.field`.
    pub field: &'static str,
    /// What was wrong with it.
    pub kind: EncodeErrorKind,
}

/// The kinds of [`EncodeError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeErrorKind {
    /// The field is null and this version has no null there.
    NullNotAllowed,
    /// A string, byte string or array longer than its length field can say.
    TooLong {
        /// Its length.
        length: usize,
    },
    /// The version lies outside what this API has.
    UnsupportedVersion {
        /// The version asked for.
        version: i16,
    },
}

impl EncodeError {
    pub(crate) const fn of(kind: EncodeErrorKind) -> Self {
        Self { field: "", kind }
    }

    pub(crate) const fn named(mut self, field: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = field;
        }
        self
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            EncodeErrorKind::NullNotAllowed => {
                write!(f, "{}: null is not allowed in this version", self.field)
            }
            EncodeErrorKind::TooLong { length } => write!(f, "{}: length {length} does not fit", self.field),
            EncodeErrorKind::UnsupportedVersion { version } => {
                write!(f, "{}: version {version} is not supported", self.field)
            }
        }
    }
}

impl core::error::Error for EncodeError {}
