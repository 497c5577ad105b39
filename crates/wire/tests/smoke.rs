//! One message by hand, byte for byte.

use semel_types::ErrorCode;
use semel_wire::{
    ApiKey, DecodeErrorKind, RawProducerEpoch, RawProducerId, Reader, RequestHeader, ResponseHeader, Text,
    Writer,
    api::end_txn::{EndTxnRequest, EndTxnResponse},
    frame,
};

fn request() -> EndTxnRequest {
    EndTxnRequest {
        transactional_id: Text::from("t"),
        producer_id: RawProducerId(7),
        producer_epoch: RawProducerEpoch(3),
        committed: true,
    }
}

#[test]
fn an_end_txn_request_has_kafkas_bytes() {
    let mut classic = Vec::new();
    request().encode(0, &mut classic).expect("version 0 exists");
    assert_eq!(classic, [0, 1, b't', 0, 0, 0, 0, 0, 0, 0, 7, 0, 3, 1]);

    let mut flexible = Vec::new();
    request().encode(5, &mut flexible).expect("version 5 exists");
    assert_eq!(flexible, [2, b't', 0, 0, 0, 0, 0, 0, 0, 7, 0, 3, 1, 0]);
}

#[test]
fn a_request_frame_is_read_back() {
    let bytes = frame::request(&request(), 5, 99, Some("me")).expect("valid");
    let progress = frame::progress(&bytes, 1000);
    let length = bytes.len() - frame::PREFIX_BYTES;
    assert_eq!(progress, Ok(frame::Progress::Complete { length }));

    let mut reader = Reader::new(bytes[frame::PREFIX_BYTES..].to_vec());
    let header = RequestHeader::decode(&mut reader).expect("header");
    assert_eq!(header.api(), Ok(ApiKey::EndTxn));
    assert_eq!((header.version, header.correlation_id), (5, 99));
    assert_eq!(header.client_id, Some(Text::from("me")));
    assert_eq!(EndTxnRequest::decode(&mut reader, 5), Ok(request()));
}

#[test]
fn a_response_frame_is_read_back() {
    let response = EndTxnResponse { error_code: ErrorCode::ProducerFenced.into(), ..Default::default() };
    let mut writer = Writer::copying(Vec::new());
    frame::response(&response, 5, 99, &mut writer).expect("valid");
    let mut reader = Reader::new(writer.into_buffer()[frame::PREFIX_BYTES..].to_vec());
    let header = ResponseHeader::decode(&mut reader, ApiKey::EndTxn, 5).expect("header");
    assert_eq!(header.correlation_id, 99);
    assert_eq!(EndTxnResponse::decode(&mut reader, 5), Ok(response));
}

#[test]
fn an_unknown_version_and_trailing_bytes_are_errors() {
    let mut reader = Reader::new(vec![0; 10]);
    let error = EndTxnRequest::decode(&mut reader, 6).expect_err("no version 6");
    assert_eq!(error.kind, DecodeErrorKind::UnsupportedVersion { version: 6 });

    let mut bytes = Vec::new();
    request().encode(0, &mut bytes).expect("version 0 exists");
    bytes.push(0);
    let error = EndTxnRequest::decode(&mut Reader::new(bytes), 0).expect_err("one byte too many");
    assert_eq!(error.kind, DecodeErrorKind::TrailingBytes { count: 1 });
    assert_eq!(error.field, "EndTxnRequest");
}
