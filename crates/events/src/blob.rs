//! Bytes that the broker keeps for clients and does not look into.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, ops::Deref};

use crate::codec::{Decode, DecodeError, Encode, Reader};

/// Opaque bytes, cheap to clone; written as their length and themselves.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob(Arc<[u8]>);

impl Default for Blob {
    fn default() -> Self {
        Self::from(&[][..])
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Encode for Blob {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.0.len() as u64).encode(out);
        out.extend_from_slice(&self.0);
    }
}

impl Decode for Blob {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = reader.length()?;
        reader.take(length).map(Self::from)
    }
}
