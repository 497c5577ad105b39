//! Kafka's wire protocol: messages, record batches, frames.
//!
//! Purpose: turn the bytes of a frame into the structs of [`api`] and back, in every version from the lowest that
//! clients need to the highest of Apache Kafka 4.4, and look into record batches through their 61-byte header
//! ([`batch`]). Start at [`Reader`] (bytes in), [`RequestHeader`], one module per API under [`api`], [`frame`]
//! (bytes out).
//!
//! Invariants:
//! - Record bytes and strings are slices of the frame, never copies. What a frame makes us allocate is bounded by
//!   its size (see [`Reader`]), whatever lengths it claims.
//! - Every failure is a typed error that names field and position; no input panics.
//! - A number that may be absent or nonsense on the wire has a `Raw` type; a type of `semel-types` is always valid.
//!
//! What it does not do: no socket, clock or thread; no rule of the protocol beyond its bytes - whether a request makes
//! sense is for its handler; no decompression.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod api;
pub mod batch;
pub mod crc;
mod error;
mod field;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod message;
mod raw;
mod reader;
mod records;
#[cfg(feature = "samples")]
mod samples;
mod text;
mod writer;

pub use api::{API_TABLE, ApiKey, ApiSpec};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use field::{Field, Form};
pub use header::{RequestHeader, ResponseHeader, Unsupported};
pub use message::{Message, Request};
pub use raw::{RawCoordinatorEpoch, RawLeaderEpoch, RawOffset, RawProducerEpoch, RawProducerId, WireCode};
pub use reader::{ALLOWANCE_PER_FRAME_BYTE, Reader, SMALL_FRAME_ALLOWANCE_BYTES};
pub use records::Records;
#[cfg(feature = "samples")]
pub use samples::Samples;
pub use text::Text;
pub use writer::Writer;
