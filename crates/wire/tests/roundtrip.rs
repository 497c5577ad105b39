//! Every message of every version is read as it was written, and what a version lacks does not appear in it.

use semel_wire::{
    API_TABLE, DecodeErrorKind, EncodeErrorKind, Message, RawOffset, Reader, Records, Request, Samples, Text,
    Writer,
    api::{
        ApiVisitor, fetch::*, for_each_api, metadata::MetadataRequest, produce::*,
        txn_offset_commit::TxnOffsetCommitTopic,
    },
    frame,
};

struct RoundTrip {
    messages: usize,
}

impl RoundTrip {
    fn all_versions<M: Message>(&mut self) {
        for version in M::API.spec().decodable() {
            for seed in 0..50 {
                let mut samples = Samples::new(seed);
                let message = M::sample_body(&mut samples, version).expect("a version of the table");
                let mut bytes = vec![0xee];
                message.encode_into(version, &mut bytes).expect("samples can be written");
                assert_eq!(bytes.remove(0), 0xee, "what stood in the buffer stays");
                let again = M::decode_body(&mut Reader::new(bytes), version);
                assert_eq!(again.as_ref(), Ok(&message), "{} {version}", M::NAME);
                self.messages += 1;
            }
        }
    }

    fn other_versions<M: Message>() {
        let versions = M::API.spec().decodable();
        for version in [*versions.start() - 1, *versions.end() + 1, i16::MIN, i16::MAX] {
            let read = M::decode_body(&mut Reader::new(vec![0; 100]), version).expect_err("unknown version");
            assert_eq!(read.kind, DecodeErrorKind::UnsupportedVersion { version });
            let written = M::default().encode_into(version, &mut Vec::new()).expect_err("unknown version");
            assert_eq!(written.kind, EncodeErrorKind::UnsupportedVersion { version });
        }
    }
}

impl ApiVisitor for RoundTrip {
    fn visit<R: Request>(&mut self) {
        self.all_versions::<R>();
        self.all_versions::<R::Response>();
        Self::other_versions::<R>();
        Self::other_versions::<R::Response>();
    }
}

#[test]
fn every_message_of_every_version_is_read_as_it_was_written() {
    let mut trip = RoundTrip { messages: 0 };
    for_each_api(&mut trip);
    let versions: usize = API_TABLE.iter().map(|spec| spec.decodable().count()).sum();
    assert_eq!(trip.messages, versions * 2 * 50);
}

#[test]
fn we_advertise_what_we_can_read_and_produce_from_zero() {
    for spec in API_TABLE {
        let is_produce = spec.name == "Produce";
        let lowest = if is_produce { 0 } else { spec.decode_min };
        assert_eq!(spec.advertise_min, lowest, "{} (KAFKA-18659)", spec.name);
        assert!(spec.advertise_max <= spec.decode_max, "{}", spec.name);
        assert_eq!(spec.key.to_string(), spec.name);
    }
}

#[test]
fn fields_of_other_versions_are_left_out_and_read_as_their_default() {
    let topic = ProduceTopic {
        name: Text::from("t"),
        topic_id: semel_types::TopicId::new([9; 16]),
        partitions: Vec::new(),
    };
    let topics = vec![topic.clone()];
    let request = ProduceRequest { topics, ..Default::default() };
    for (version, has_name) in [(12, true), (13, false)] {
        let mut bytes = Vec::new();
        request.encode(version, &mut bytes).expect("encodes");
        let read = ProduceRequest::decode(&mut Reader::new(bytes), version).expect("decodes");
        assert_eq!(read.topics[0].name == topic.name, has_name);
        assert_eq!(read.topics[0].topic_id == topic.topic_id, !has_name);
    }
    assert!(TxnOffsetCommitTopic::default().topic_id.is_zero());
}

#[test]
fn null_is_refused_where_the_version_has_none() {
    let all_topics = MetadataRequest { topics: None, ..Default::default() };
    let error = all_topics.encode(0, &mut Vec::new()).expect_err("version 0 has no null");
    assert_eq!((error.field, error.kind), ("MetadataRequest.topics", EncodeErrorKind::NullNotAllowed));
    let mut bytes = Vec::new();
    all_topics.encode(1, &mut bytes).expect("version 1 has");
    assert_eq!(bytes, [0xff; 4]);
    let error = MetadataRequest::decode(&mut Reader::new(bytes), 0).expect_err("version 0 has no null");
    assert_eq!((error.field, error.kind), ("MetadataRequest.topics", DecodeErrorKind::UnexpectedNull));
}

#[test]
fn a_string_of_more_than_32767_bytes_is_refused_in_every_version() {
    let long = "x".repeat(32_768);
    let request = |id: &str| ProduceRequest { transactional_id: Some(Text::from(id)), ..Default::default() };
    for version in [8, 9] {
        let error = request(&long).encode(version, &mut Vec::new()).expect_err("too long");
        assert_eq!(error.kind, EncodeErrorKind::TooLong { length: 32_768 });
        assert_eq!(error.field, "ProduceRequest.transactional_id");
        let longest = request(&long[1..]);
        let mut bytes = Vec::new();
        longest.encode(version, &mut bytes).expect("just fits");
        assert_eq!(ProduceRequest::decode(&mut Reader::new(bytes), version), Ok(longest));
    }
    let mut compact = vec![0x81, 0x80, 2];
    compact.extend(long.bytes());
    let error = ProduceRequest::decode(&mut Reader::new(compact), 9).expect_err("too long");
    assert_eq!(error.kind, DecodeErrorKind::TextTooLong { length: 32_768 });
}

#[test]
fn unknown_tagged_fields_are_skipped() {
    let mut bytes = Vec::new();
    FetchRequest::default().encode(12, &mut bytes).expect("encodes");
    assert_eq!(bytes.pop(), Some(0), "no tagged fields");
    bytes.extend([2, 77, 3, 1, 2, 3, 0x80, 1, 0]);
    let read = FetchRequest::decode(&mut Reader::new(bytes.clone()), 12);
    assert_eq!(read, Ok(FetchRequest::default()));

    // Tag 1 exists from version 15 only; before it is as unknown as any.
    bytes.truncate(bytes.len() - 9);
    bytes.extend([1, 1, 2, 0xff, 0xff]);
    let read = FetchRequest::decode(&mut Reader::new(bytes), 12);
    assert_eq!(read, Ok(FetchRequest::default()));
}

#[test]
fn a_tagged_field_must_fill_its_size() {
    let mut bytes = Vec::new();
    FetchRequest::default().encode(12, &mut bytes).expect("encodes");
    bytes.pop();
    bytes.extend([1, 0, 4, 2, b'x', 0, 0]);
    let error = FetchRequest::decode(&mut Reader::new(bytes), 12).expect_err("two bytes too many");
    assert_eq!(error.kind, DecodeErrorKind::TagSizeMismatch { tag: 0 });
}

#[test]
fn large_record_slices_are_not_copied_into_a_vectored_writer() {
    let (small, large) = (vec![1; 10], bytes::Bytes::from(vec![2; 5000]));
    let records = Records::from(vec![small.into(), large.clone()]);
    let partition = FetchPartitionResponse {
        records: Some(records),
        high_watermark: RawOffset(11),
        ..Default::default()
    };
    let topic = FetchTopicResponse { partitions: vec![partition.clone(), partition], ..Default::default() };
    let responses = vec![topic];
    let response = FetchResponse { responses, ..Default::default() };

    let mut copied = Writer::copying(Vec::new());
    frame::response(&response, 12, 5, &mut copied).expect("encodes");
    let mut vectored = Writer::vectored(Vec::new(), 4096);
    frame::response(&response, 12, 5, &mut vectored).expect("encodes");
    assert_eq!(copied.len(), vectored.len());

    let chunks = vectored.into_chunks();
    let is_large = |chunk: &&bytes::Bytes| chunk.as_ptr() == large.as_ptr();
    assert_eq!(chunks.iter().filter(is_large).count(), 2, "the very slices, twice");
    let copied = copied.into_buffer();
    assert_eq!(chunks.concat(), copied);

    let length = copied.len() - frame::PREFIX_BYTES;
    assert_eq!(frame::progress(&copied, 1 << 20), Ok(frame::Progress::Complete { length }));
    let mut reader = Reader::new(copied[frame::PREFIX_BYTES..].to_vec());
    let header = semel_wire::ResponseHeader::decode(&mut reader, semel_wire::ApiKey::Fetch, 12);
    assert_eq!(header.map(|header| header.correlation_id), Ok(5));
    assert_eq!(FetchResponse::decode(&mut reader, 12), Ok(response));
}

#[test]
fn records_and_strings_are_slices_of_the_frame() {
    let partition = ProducePartition { records: Some(vec![7; 1000].into()), ..Default::default() };
    let topic = ProduceTopic { name: Text::from("name"), partitions: vec![partition], ..Default::default() };
    let topics = vec![topic];
    let mut frame = Vec::new();
    let request = ProduceRequest { topics, ..Default::default() };
    request.encode(9, &mut frame).expect("encodes");
    let frame = bytes::Bytes::from(frame);
    let inside = |at: *const u8| frame.as_ptr_range().contains(&at);
    let read = ProduceRequest::decode(&mut Reader::new(frame.clone()), 9).expect("decodes");
    let records = read.topics[0].partitions[0].records.as_ref().expect("not null");
    assert!(inside(records.as_ptr()));
    assert!(inside(read.topics[0].name.as_ptr()));
}
