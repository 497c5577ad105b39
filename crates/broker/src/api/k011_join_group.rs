//! JoinGroup (key 11), version 0 only, refused.
//!
//! Behaviour: groups with members are not built yet, and a client that joins must learn it at once. The answer is
//! error 35 UNSUPPORTED_VERSION, which every client raises to the application; a retriable code (15, 14) would let
//! it wait for ever in silence, and 24 or 30 would name a cause that is not there.
//! Version notes: version 0 is advertised because librdkafka reads features from its presence (KAFKA-19444); clients
//! that need a later version (Java) say by themselves that the broker does not have it. Other versions close the
//! connection, like every version that is not advertised.

use bytes::Bytes;
use semel_types::ErrorCode;
use semel_wire::{Field, Form, RequestHeader, Writer};

use super::{Head, Reply, Route};

pub(super) const API_KEY: i16 = 11;

/// The refusal, if this is a JoinGroup of the one version we advertise.
pub(super) fn refuse(header: &RequestHeader) -> Option<(i16, Route)> {
    (header.api_key == API_KEY && header.version == 0).then_some((0, Route::Reply(Reply::JoinGroup)))
}

/// Writes the answer by hand: error code, generation, three empty strings, no members.
pub(super) fn encode(head: &Head, writer: &mut Writer) {
    const PREFIXED: Form = Form { version: 0, flexible: false, nullable: true };
    let mut body = Vec::with_capacity(24);
    body.extend(head.correlation_id.to_be_bytes());
    body.extend(ErrorCode::UnsupportedVersion.get().to_be_bytes());
    body.extend((-1_i32).to_be_bytes());
    body.extend([0; 3 * 2]);
    body.extend([0; 4]);
    Some(Bytes::from(body)).write(writer, PREFIXED).expect("twenty-four bytes fit a frame");
}
