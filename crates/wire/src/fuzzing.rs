//! What the fuzz targets call: each takes any bytes, must never panic, and checks what it could read.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::{
    API_TABLE, ApiKey, Message, Reader, Request, RequestHeader,
    api::{self, ApiVisitor},
    batch::{self, Batch, BatchError, Compression, Marker},
};

/// A request frame: header, then the body that it announces.
pub fn request(input: &[u8]) {
    let mut reader = Reader::new(Bytes::copy_from_slice(input));
    let Ok(header) = RequestHeader::decode(&mut reader) else {
        return;
    };
    let Ok(api) = header.api() else { return };
    let (body, version, is_request) = (reader.rest(), header.version, true);
    api::for_each_api(&mut CheckBody { api, version, is_request, body });
}

/// A response body: the first byte chooses the API, the second the version.
pub fn response(input: &[u8]) {
    let [api, version, body @ ..] = input else { return };
    let api = API_TABLE[usize::from(*api) % API_TABLE.len()].key;
    let (body, version, is_request) = (Bytes::copy_from_slice(body), i16::from(*version), false);
    api::for_each_api(&mut CheckBody { api, version, is_request, body });
}

/// Checks a body of one API.
struct CheckBody {
    api: ApiKey,
    version: i16,
    is_request: bool,
    body: Bytes,
}

impl ApiVisitor for CheckBody {
    fn visit<R: Request>(&mut self) {
        let reader = Reader::new(self.body.clone());
        if self.api != R::API {
            return;
        }
        if self.is_request {
            check_body::<R>(reader, self.version);
        } else {
            check_body::<R::Response>(reader, self.version);
        }
    }
}

/// A blob of record batches.
pub fn records(input: &[u8]) {
    for batch in batch::split(Bytes::copy_from_slice(input)) {
        let Ok(batch) = batch else { return };
        check_batch(&batch);
    }
}

/// What was read can be written, and is then read as the same.
fn check_body<M: Message>(mut reader: Reader, version: i16) {
    let Ok(message) = M::decode_body(&mut reader, version) else {
        return;
    };
    let mut bytes = Vec::new();
    let written = message.encode_into(version, &mut bytes);
    assert_eq!(written, Ok(()), "{} {version} was read but cannot be written", M::NAME);
    let again = M::decode_body(&mut Reader::new(bytes), version);
    assert!(again == Ok(message), "{} {version} changed on the way", M::NAME);
}

fn check_batch(batch: &Batch) {
    if batch.verify_crc().is_ok() {
        assert_eq!(batch.payload_checksum().0, crate::crc::crc32c(batch.payload()));
    }
    // Whether it is one does not matter here, only that asking is safe.
    let _marker = Marker::parse(batch);
    let Ok(records) = batch.records() else {
        assert_ne!(batch.attributes().compression(), Some(Compression::None));
        return;
    };
    let mut errors = 0;
    for record in records {
        match record {
            Ok(record) => record.headers().for_each(drop),
            Err(BatchError::Record { .. }) => errors += 1,
            Err(other) => panic!("a record's error is one of records: {other}"),
        }
    }
    assert!(errors <= 1, "the walk goes on after an error");
    let is_counted = batch.check_count().is_ok();
    assert!(errors > 0 || is_counted || batch.record_count() < 1 || !has_straight_deltas(batch));
}

fn has_straight_deltas(batch: &Batch) -> bool {
    let Ok(records) = batch.records() else { return false };
    let straight = records
        .enumerate()
        .all(|(index, record)| record.is_ok_and(|record| i64::from(record.offset_delta) == index as i64));
    straight && i64::from(batch.last_offset_delta()) + 1 == i64::from(batch.record_count())
}
