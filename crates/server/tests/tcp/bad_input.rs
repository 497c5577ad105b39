//! Bad input: the code that Kafka gives, the connection kept where Kafka keeps it, nothing changed, one line of log.

use bytes::Bytes;
use semel_certify::{
    Client,
    session::{Identity, Isolation, produce_request, produced},
};
use semel_types::{Sequence, TopicId};
use semel_wire::{
    ApiKey, RawProducerEpoch, RawProducerId, RequestHeader, Writer,
    api::{
        api_versions::ApiVersionsRequest,
        fetch::{FetchPartition, FetchRequest, FetchTopic},
        produce::{ProducePartition, ProduceRequest, ProduceTopic},
    },
    batch::{BatchBuilder, NewRecord},
    frame,
};

use crate::rig::{
    FETCH, PATIENCE, Rig, assert_closed, assert_kept, batch, fate, fetch, hello, produce, produce_acks,
};

/// A frame with this header and these bytes behind it.
fn raw_frame(api_key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let header = RequestHeader { api_key, version, correlation_id: 7, client_id: Some("stranger".into()) };
    let mut writer = Writer::copying(Vec::new());
    header.encode(&mut writer).expect("a header of any version");
    let mut content = writer.into_buffer();
    content.extend_from_slice(body);
    let length = i32::try_from(content.len()).expect("short");
    [&length.to_be_bytes()[..], &content].concat()
}

/// Sends bytes that must close their connection, and demands that nothing else happens and that the log says why.
#[track_caller]
fn closes(bytes: &[u8], reason: &str) {
    let mut rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let mut other = rig.client();
    client.send_bytes(bytes).expect("it listens");
    assert_closed(&mut client);
    assert_kept(&mut other);
    assert_eq!(rig.end().get(), 0);
    let line = rig.server.wait_line("closed its connection", PATIENCE).expect("it is logged");
    assert!(line.contains(reason) && line.contains("WARN"), "{line}");
    assert!(line.contains(&client.address().expect("a socket").to_string()), "{line}");
}

#[test]
fn an_unknown_api_closes_the_connection() {
    closes(&raw_frame(999, 0, &[0; 8]), "999");
}

#[test]
fn an_unknown_version_closes_the_connection() {
    closes(&raw_frame(ApiKey::InitProducerId.get(), 99, &[0; 8]), "99");
    closes(&raw_frame(ApiKey::Produce.get(), 2, &[0; 8]), "2");
}

#[test]
fn a_body_shorter_than_its_version_says_closes_the_connection() {
    closes(&raw_frame(ApiKey::Produce.get(), 9, &[0, 0xff]), "malformed");
}

#[test]
fn a_header_cut_short_closes_the_connection() {
    closes(&[0, 0, 0, 3, 0, 0, 0], "malformed");
    closes(&[0, 0, 0, 0], "malformed");
}

#[test]
fn a_string_or_an_array_longer_than_its_frame_closes_the_connection() {
    // acks, timeout, then two thousand million topics.
    let body = [&[0xff, 0xff][..], &[0xff; 2], &[0; 4], &0x7fff_ffff_i32.to_be_bytes()].concat();
    closes(&raw_frame(ApiKey::Produce.get(), 8, &body), "malformed");
    let name = [&0x7ff0_i16.to_be_bytes()[..], b"short"].concat();
    closes(&raw_frame(ApiKey::InitProducerId.get(), 0, &name), "malformed");
}

#[test]
fn a_length_prefix_below_zero_or_above_the_limit_closes_the_connection_at_once() {
    closes(&(-1_i32).to_be_bytes(), "frame of -1 bytes");
    closes(&i32::MAX.to_be_bytes(), "frame of 2147483647 bytes");
    closes(b"GET / HTTP/1.1\r\n\r\n", "frame of 1195725856 bytes");
}

#[test]
fn a_frame_above_socket_request_max_bytes_closes_the_connection_and_one_at_the_limit_does_not() {
    let rig = Rig::with_topic(&["--set", "socket.request.max.bytes=4096"]);
    let frame_of =
        |value_bytes: usize| frame::request(&produce(&vec![7; value_bytes]), 9, 1, None).expect("a request");
    let overhead_bytes = frame_of(4000).len() - 4000;
    let mut client = rig.client();
    let at_limit = frame_of(4 + 4096 - overhead_bytes);
    assert_eq!(at_limit.len(), 4 + 4096);
    client.send_bytes(&at_limit).expect("it listens");
    client.receive_frame().expect("answered");
    client.send_bytes(&frame_of(4 + 4097 - overhead_bytes)).expect("it listens");
    assert_closed(&mut client);
    assert_eq!(rig.end().get(), 1);
}

#[test]
fn a_truncated_frame_is_never_executed() {
    let rig = Rig::with_topic(&[]);
    let whole = frame::request(&produce(b"x"), 9, 1, None).expect("a request");
    let mut client = rig.client();
    client.send_bytes(&whole[..whole.len() - 1]).expect("it listens");
    client.finish_sending().expect("it listens");
    assert_closed(&mut client);
    assert_eq!(rig.end().get(), 0);
}

#[test]
fn requests_before_a_bad_frame_are_answered_before_the_connection_is_closed() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let good = frame::request(&produce(b"x"), 9, 1, None).expect("a request");
    let bad = raw_frame(999, 0, &[]);
    client.send_bytes(&[good, bad].concat()).expect("it listens");
    assert!(client.receive_frame().is_ok(), "the first request is answered");
    assert_closed(&mut client);
    assert_eq!(rig.end().get(), 1);
}

#[test]
fn bytes_after_the_end_of_a_request_are_no_reason_to_close_its_connection() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    client.send_bytes(&raw_frame(ApiKey::ApiVersions.get(), 0, &[0; 20])).expect("it listens");
    assert_eq!(client.receive_frame().expect("answered")[..6], [0, 0, 0, 7, 0, 0]);
    assert_kept(&mut client);
}

#[test]
fn a_batch_that_is_cut_short_or_missing_is_87() {
    let whole = batch(b"x").bytes().clone();
    refused(&of(whole.slice(..whole.len() - 1)), 9, 87, "refused a batch");
    refused(&of(whole.slice(..30)), 9, 87, "refused a batch");
    refused(&of(Bytes::new()), 9, 87, "refused a batch");
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0_with_35() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    client.send_bytes(&raw_frame(ApiKey::ApiVersions.get(), 99, &[1, 1, 0])).expect("it listens");
    let answer = client.receive_frame().expect("answered");
    assert_eq!(answer[..6], [0, 0, 0, 7, 0, 35], "correlation id and code of a version 0 answer");
    let highest = *ApiKey::ApiVersions.spec().advertised().end();
    let range = [18_i16, 0, highest].map(i16::to_be_bytes).concat();
    assert!(answer.windows(6).any(|window| window == range), "it names its own range");
    assert_kept(&mut client);
}

/// Sends a Produce that must be refused with this code on a connection that is kept, and changes nothing.
#[track_caller]
fn refused(request: &ProduceRequest, version: i16, code: i16, line: &str) {
    let mut rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let answer = client.call(request, version).expect("answered");
    let answers = answer.responses.into_iter().flat_map(|topic| topic.partitions);
    for answer in answers.map(produced) {
        assert_eq!((answer.code.get(), answer.base_offset.get()), (code, -1), "{:?}", answer.message);
    }
    assert_kept(&mut client);
    assert_eq!(rig.end().get(), 0);
    let said = rig.server.wait_line(line, PATIENCE).expect("it is logged");
    assert!(said.contains("WARN") && said.contains("certify"), "{said}");
}

fn of(bytes: Bytes) -> ProduceRequest {
    let partition = ProducePartition { records: Some(bytes), ..Default::default() };
    let topic = ProduceTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 1000, topics: vec![topic], ..Default::default() }
}

#[test]
fn a_wrong_magic_is_87() {
    let mut bytes = batch(b"x").bytes().to_vec();
    bytes[16] = 1;
    refused(&of(bytes.into()), 9, 87, "format 1");
}

#[test]
fn a_wrong_checksum_is_2() {
    let mut bytes = batch(b"x").bytes().to_vec();
    *bytes.last_mut().expect("not empty") ^= 1;
    refused(&of(bytes.into()), 9, 2, "refused a batch");
}

#[test]
fn a_count_that_disagrees_with_the_records_is_87() {
    let records = [NewRecord::of(b"a"), NewRecord::of(b"b")];
    let whole = BatchBuilder::new().records(records).build();
    let mut bytes = whole.bytes().to_vec();
    bytes[57..61].copy_from_slice(&3_i32.to_be_bytes());
    let checksum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    refused(&of(bytes.into()), 9, 87, "refused a batch");
}

#[test]
fn two_batches_for_one_partition_are_87() {
    let stamp = Identity { id: semel_types::ProducerId::new(1), epoch: semel_types::ProducerEpoch::ZERO };
    let one = |sequence| {
        let sequence = Sequence::from_wire(sequence).expect("a sequence");
        BatchBuilder::new().stamped(stamp, sequence).record(NewRecord::of(b"x")).build()
    };
    let both = [&one(0).bytes()[..], &one(1).bytes()[..]].concat();
    refused(&of(both.into()), 9, 87, "refused a batch");
}

#[test]
fn an_unknown_topic_is_3_and_an_unknown_id_100() {
    let elsewhere = produce_request(&[(&semel_certify::session::Place::of("nowhere", 0), batch(b"x"))], None);
    refused(&elsewhere, 9, 3, "there is no such topic");
    refused(
        &produce_request(&[(&semel_certify::session::Place::of("t", 5), batch(b"x"))], None),
        9,
        3,
        "partition",
    );
    let mut by_id = of(batch(b"x").bytes().clone());
    by_id.topics[0].topic_id = TopicId::new([7; 16]);
    refused(&by_id, 13, 100, "no topic has this id");
}

#[test]
fn a_fetch_of_an_unknown_topic_or_id_is_answered_at_once_on_a_connection_that_is_kept() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let mut request = fetch(0, (1, 60_000), Isolation::Uncommitted);
    request.topics[0].topic = "nowhere".into();
    let code = |client: &mut Client, request: &FetchRequest, version| {
        let answer = client.call(request, version).expect("answered");
        answer.responses[0].partitions[0].error_code.get()
    };
    assert_eq!(code(&mut client, &request, FETCH), 3);
    let topic = FetchTopic {
        topic_id: TopicId::new([7; 16]),
        partitions: vec![FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() }],
        ..Default::default()
    };
    let request = FetchRequest { topics: vec![topic], ..request };
    assert_eq!(code(&mut client, &request, 13), 100);
    assert_kept(&mut client);
}

#[test]
fn a_transactional_batch_without_transactional_id_is_53() {
    let stamp = Identity { id: semel_types::ProducerId::new(1), epoch: semel_types::ProducerEpoch::ZERO };
    let bytes = BatchBuilder::new()
        .stamped(stamp, Sequence::ZERO)
        .transactional()
        .record(NewRecord::of(b"x"))
        .build();
    refused(&of(bytes.into_bytes()), 9, 53, "without transactional id");
}

#[test]
fn a_control_batch_from_a_client_is_87() {
    let stamp = Identity { id: semel_types::ProducerId::new(1), epoch: semel_types::ProducerEpoch::ZERO };
    let bytes =
        BatchBuilder::new().stamped(stamp, Sequence::ZERO).control().record(NewRecord::of(b"x")).build();
    refused(&of(bytes.into_bytes()), 9, 87, "control batch");
}

#[test]
fn a_producer_id_or_epoch_below_minus_1_is_87() {
    for (id, epoch) in [(-2, -1), (5, -2)] {
        let stamped = BatchBuilder::new().stamped_raw(RawProducerId(id), RawProducerEpoch(epoch), 0);
        refused(&of(stamped.record(NewRecord::of(b"x")).build().into_bytes()), 9, 87, "below -1");
    }
}

#[test]
fn acks_other_than_0_1_and_minus_1_are_21() {
    refused(&produce_acks(b"x", 5), 9, 21, "acks 5");
}

#[test]
fn a_flood_of_bad_batches_is_told_in_ten_lines_a_second() {
    let mut rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let mut bytes = batch(b"x").bytes().to_vec();
    bytes[16] = 1;
    let request = of(bytes.into());
    for _ in 0..200 {
        assert_eq!(fate(client.call(&request, 9).expect("answered")).0, 87);
    }
    rig.server.terminate().expect("it stops");
    let mut lines = 0;
    while let Some(line) = rig.server.next_line(PATIENCE) {
        lines += usize::from(line.contains("refused a batch"));
    }
    assert!((10..=60).contains(&lines), "{lines} lines");
}

#[test]
fn software_names_outside_of_kafkas_pattern_are_42_on_a_connection_that_is_kept() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let request = ApiVersionsRequest { client_software_name: "a b".into(), ..hello() };
    assert_eq!(client.call(&request, 3).expect("answered").error_code.get(), 42);
    assert_kept(&mut client);
}
