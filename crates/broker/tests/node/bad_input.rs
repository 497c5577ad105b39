//! Bad input: the code that Kafka gives, the connection kept where Kafka keeps it, nothing changed.

use bytes::Bytes;
use semel_broker::room::Room;
use semel_types::{ProducerId, ProducerStamp};
use semel_wire::{
    ApiKey, RawProducerEpoch, RawProducerId, Text,
    api::{api_versions::*, produce::*},
    batch::{Attributes, BatchBuilder, NewRecord},
    frame,
};

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    broker
}

/// Sends a batch that must be refused with this code, and checks that nothing else happened.
#[track_caller]
fn refused(broker: &mut Broker, id: Option<&str>, records: Bytes, code: i16) -> ProducePartitionResponse {
    let on = broker.connect();
    let before = broker.dump(T);
    let sent = broker.produce(on, CLASSIC, id, T, records).answer();
    assert_eq!(sent.error_code.get(), code, "{:?}", sent.error_message);
    assert_eq!(sent.base_offset.get(), -1);
    assert!(sent.error_message.is_some(), "version 8 and later carry a text");
    assert_eq!(broker.dump(T), before);
    sent
}

fn one(value: &'static str) -> NewRecord<'static> {
    NewRecord::of(value.as_bytes())
}

fn two_batches(stamp: ProducerStamp) -> Bytes {
    let mut both = plain(stamp, 0, &["a"]).to_vec();
    both.extend(plain(stamp, 1, &["b"]));
    Bytes::from(both)
}

#[test]
fn b90_malformed_batches_are_refused_and_the_next_good_one_is_taken() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let control = batch(stamp, 0, &["x"]).control().build().into_bytes();
    refused(&mut broker, None, control, 87);
    refused(&mut broker, None, two_batches(stamp), 87);
    let mut old_magic = plain(stamp, 0, &["x"]).to_vec();
    old_magic[16] = 1;
    refused(&mut broker, None, Bytes::from(old_magic), 87);
    let mut wrong_crc = plain(stamp, 0, &["x"]).to_vec();
    *wrong_crc.last_mut().unwrap() ^= 1;
    refused(&mut broker, None, Bytes::from(wrong_crc), 2);
    refused(&mut broker, None, transactional(stamp, 0, &["x"]), 53);
    let cut = plain(stamp, 0, &["x"]);
    refused(&mut broker, None, cut.slice(..cut.len() - 1), 87);
    refused(&mut broker, None, Bytes::new(), 87);
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["good"]))), (0, 0));
}

#[test]
fn b90_a_count_that_disagrees_with_the_records_is_87() {
    let mut broker = broker();
    let (count, delta) = (57..61, 23..27);
    for (range, value) in [(count.clone(), 5_i32), (count, -1), (delta, 7)] {
        let mut bytes = anonymous(&["a", "b"]).to_vec();
        bytes[range].copy_from_slice(&value.to_be_bytes());
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        refused(&mut broker, None, Bytes::from(bytes), 87);
    }
}

/// CRC32C, bit by bit: the tests' own.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn header_fields_below_minus_one_or_half_given_are_87() {
    let mut broker = broker();
    for (id, epoch, sequence) in [(-2, -1, -1), (5, -2, 0), (5, -1, 0), (5, 0, -1), (5, 0, -2)] {
        let batch = BatchBuilder::new()
            .stamped_raw(RawProducerId(id), RawProducerEpoch(epoch), sequence)
            .record(one("x"))
            .build();
        refused(&mut broker, None, batch.into_bytes(), 87);
    }
}

#[test]
fn a_transactional_batch_without_producer_id_is_49() {
    let mut broker = broker();
    let batch = BatchBuilder::new().transactional().record(one("x")).build().into_bytes();
    refused(&mut broker, Some("tx"), batch, 49);
}

#[test]
fn a_base_offset_other_than_0_is_87_and_an_unknown_compression_76() {
    let mut broker = broker();
    let mut placed = anonymous(&["x"]).to_vec();
    placed[7] = 3;
    refused(&mut broker, None, Bytes::from(placed), 87);
    let unknown = BatchBuilder::new().attributes(Attributes(6)).record(one("x")).build().into_bytes();
    refused(&mut broker, None, unknown, 76);
    let zstd = BatchBuilder::new().attributes(Attributes(4)).record(one("x")).build().into_bytes();
    let on = broker.connect();
    assert_eq!(broker.produce(on, 6, None, T, zstd).answer().error_code.get(), 76);
}

#[test]
fn transactional_batches_of_two_producers_in_one_request_are_49() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let other = ProducerStamp { id: ProducerId::new(stamp.id.get() + 1), ..stamp };
    let batches = [(T, transactional(stamp, 0, &["a"])), (T, transactional(other, 0, &["b"]))];
    let sent = broker.produce_all(on, CLASSIC, Some("tx"), &batches).answer();
    assert!(sent.iter().all(|sent| sent.error_code.get() == 49));
    assert!(broker.dump(T).is_empty());
}

#[test]
fn acks_other_than_0_1_and_minus_1_are_21_for_every_partition() {
    let mut broker = broker();
    let on = broker.connect();
    for acks in [2, -2, 100] {
        let request = produce_request(CLASSIC, acks, None, &[(T, anonymous(&["x"]))], &broker);
        let answer: ProduceResponse = broker.ask(on, CLASSIC, &request).answer();
        assert_eq!(answer.responses[0].partitions[0].error_code.get(), 21);
    }
    assert!(broker.dump(T).is_empty());
}

#[test]
fn batches_too_large_for_topic_or_segment_are_10_and_18() {
    let mut broker = Broker::new();
    broker.topic_with("t", 1, &[("max.message.bytes", "200")]);
    let large = anonymous(&["x".repeat(300).as_str()]);
    refused(&mut broker, None, large, 10);
    let mut broker = Broker::new();
    broker.topic_with("t", 1, &[("segment.bytes", "1048576"), ("max.message.bytes", "10000000")]);
    let large = anonymous(&["x".repeat(2 << 20).as_str()]);
    refused(&mut broker, None, large, 18);
}

#[test]
fn a_compacted_topic_takes_no_record_without_key() {
    let mut broker = Broker::new();
    broker.topic_with("t", 1, &[("cleanup.policy", "compact")]);
    let keyed = NewRecord { key: Some(b"k"), ..one("v") };
    let mixed = BatchBuilder::new().record(keyed).record(one("v")).build().into_bytes();
    let sent = refused(&mut broker, None, mixed, 87);
    assert_eq!(sent.record_errors.len(), 1);
    assert_eq!(sent.record_errors[0].batch_index, 1);
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, T, BatchBuilder::new().record(keyed).build().into_bytes())), (0, 0));
}

#[test]
fn unknown_topics_are_3_by_name_and_100_by_id_and_internal_ones_17() {
    let mut broker = broker();
    let on = broker.connect();
    let nowhere = ("nowhere", 0);
    assert_eq!(broker.produce(on, 12, None, nowhere, anonymous(&["x"])).answer().error_code.get(), 3);
    assert_eq!(broker.produce(on, 13, None, nowhere, anonymous(&["x"])).answer().error_code.get(), 100);
    assert_eq!(broker.produce(on, 13, None, T, anonymous(&["x"])).answer().error_code.get(), 0);
    let internal = ("__transaction_state", 0);
    assert_eq!(broker.produce(on, 12, None, internal, anonymous(&["x"])).answer().error_code.get(), 17);
}

#[test]
fn without_room_new_batches_are_56_identities_15_and_duplicates_and_ends_go_on() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let (first, second, third) = (plain(stamp, 0, &["a"]), plain(stamp, 1, &["b"]), plain(stamp, 2, &["c"]));
    assert_eq!(fate(&broker.send(on, T, first.clone())), (0, 0));
    let owned = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", owned, T, "t");
    broker.disk.say(Room::Full);
    assert_eq!(fate(&broker.send(on, T, second.clone())), (56, -1));
    assert_eq!(fate(&broker.send(on, T, first)), (0, 0), "a duplicate needs no room");
    assert_eq!(broker.init_raw(on, 4, Some("new"), 60_000, None).error_code.get(), 15);
    assert_eq!(broker.commit(on, "tx", owned), 0, "an end draws on the reserve");
    broker.disk.say(Room::Enough);
    assert_eq!(
        fate(&broker.send(on, T, third.clone())),
        (45, -1),
        "its predecessor was refused and will come"
    );
    assert_eq!(broker.send(on, T, second).error_code.get(), 0);
    assert_eq!(broker.send(on, T, third).error_code.get(), 0);
    assert_eq!(broker.values(T), ["a", "t", "b", "c"]);
}

#[test]
fn while_a_file_is_prepared_a_request_is_held_undecided() {
    let mut broker = broker();
    let on = broker.connect();
    broker.disk.say(Room::Wait);
    assert!(matches!(broker.produce(on, CLASSIC, None, T, anonymous(&["held"])), Outcome::Silence));
    assert!(broker.dump(T).is_empty());
    broker.disk.say(Room::Enough);
    assert!(matches!(broker.retry_deferred(on), Outcome::Answer(_)));
    assert_eq!(broker.values(T), ["held"]);
}

#[test]
fn frames_that_are_no_request_close_the_connection() {
    let mut broker = broker();
    let on = broker.connect();
    let good = frame::request(
        &produce_request(CLASSIC, -1, None, &[(T, anonymous(&["x"]))], &broker),
        CLASSIC,
        7,
        None,
    );
    let good = Bytes::from(good.unwrap()).slice(frame::PREFIX_BYTES..);
    for cut in 0..good.len() {
        assert!(broker.ask_raw(on, good.slice(..cut)).is_closed(), "cut at {cut}");
    }
    for (key, version) in [(999_i16, 0_i16), (0, 2), (0, 99), (1, 3), (22, 6)] {
        let mut header = Vec::new();
        header.extend(key.to_be_bytes());
        header.extend(version.to_be_bytes());
        header.extend([0, 0, 0, 7, 0xff, 0xff]);
        assert!(broker.ask_raw(on, Bytes::from(header)).is_closed(), "API {key} version {version}");
    }
    assert!(broker.dump(T).is_empty());
    // What stands behind the end of a request is left alone, as Kafka does.
    let mut longer = good.to_vec();
    longer.push(0);
    assert!(!broker.ask_raw(on, Bytes::from(longer)).is_closed());
    assert_eq!(broker.dump(T).len(), 1);
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0_with_35_and_its_own_range_alone() {
    let mut broker = broker();
    let on = broker.connect();
    let mut header = Vec::new();
    header.extend(18_i16.to_be_bytes());
    header.extend(99_i16.to_be_bytes());
    header.extend([0, 0, 0, 7, 0xff, 0xff, 0]);
    let answer: ApiVersionsResponse = broker.ask_bytes(on, Bytes::from(header), 0).answer();
    assert_eq!(answer.error_code.get(), 35);
    let ranges: Vec<_> =
        answer.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect();
    assert_eq!(ranges, [(18, 0, 5)], "a longer list would be taken for the whole answer, without features");
}

#[test]
fn a_client_that_means_to_reach_another_cluster_or_node_is_told_to_look_for_it_anew() {
    let mut broker = broker();
    let on = broker.connect();
    let request = ApiVersionsRequest {
        client_software_name: Text::from("tests"),
        client_software_version: Text::from("1.0"),
        ..Default::default()
    };
    let (another, this) = (Some(Text::from("another")), 1);
    let cases =
        [(another.clone(), this, 129), (another.clone(), 77, 129), (another, -1, 42), (None, this, 42)];
    for (cluster_id, node_id, due) in cases {
        let request = ApiVersionsRequest { cluster_id, node_id, ..request.clone() };
        let answer: ApiVersionsResponse = broker.ask(on, 5, &request).answer();
        assert_eq!(answer.error_code.get(), due);
        assert!(answer.api_keys.is_empty());
    }
}

#[test]
fn api_versions_names_what_clients_look_for() {
    let mut broker = broker();
    let on = broker.connect();
    let request = ApiVersionsRequest {
        client_software_name: Text::from("tests"),
        client_software_version: Text::from("1.0"),
        ..Default::default()
    };
    for version in 0..=5 {
        let answer: ApiVersionsResponse = broker.ask(on, version, &request).answer();
        assert_eq!(answer.error_code.get(), 0);
        let range = |key| {
            let api = answer.api_keys.iter().find(|api| api.api_key == key);
            api.map(|api| (api.min_version, api.max_version))
        };
        assert_eq!(range(0), Some((0, 13)), "Produce from 0, KAFKA-18659");
        assert_eq!(range(11), Some((0, 9)), "JoinGroup from 0, KAFKA-19444");
        assert_eq!(range(68), Some((0, 1)), "ConsumerGroupHeartbeat, KIP-848");
        for key in [22, 24, 25, 26, 28] {
            assert_eq!(range(key).map(|(min, _)| min), Some(0));
        }
        if version >= 3 {
            let levels = answer.finalized_features.iter();
            let levels: Vec<_> = levels.map(|one| (one.name.as_str(), one.max_version_level)).collect();
            assert_eq!(levels, [("group.version", 1), ("streams.version", 1), ("transaction.version", 2)]);
            assert!(answer.finalized_features_epoch >= 0);
        }
    }
    let bad = ApiVersionsRequest { client_software_name: Text::from("no good"), ..request };
    let answer: ApiVersionsResponse = broker.ask(on, 3, &bad).answer();
    assert_eq!(answer.error_code.get(), 42);
}

fn told_versions(broker: &mut Broker) -> ApiVersionsResponse {
    let on = broker.connect();
    let request = ApiVersionsRequest {
        client_software_name: Text::from("tests"),
        client_software_version: Text::from("1.0"),
        ..Default::default()
    };
    broker.ask(on, 4, &request).answer()
}

#[test]
fn the_finalized_level_follows_the_setting() {
    let mut broker = Broker::with(&[("semel.transaction.version", "0")]);
    let answer = told_versions(&mut broker);
    let names: Vec<_> = answer.finalized_features.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["group.version", "streams.version"]);
}

#[test]
fn without_topic_ids_no_version_is_named_that_carries_one() {
    let mut broker = Broker::with(&[("semel.topic.ids", "false")]);
    let answer = told_versions(&mut broker);
    let highest = |key: ApiKey| {
        let row = answer.api_keys.iter().find(|api| api.api_key == key.get());
        row.map(|api| api.max_version)
    };
    let by_name = [
        (ApiKey::Produce, 12),
        (ApiKey::Fetch, 12),
        (ApiKey::Metadata, 9),
        (ApiKey::OffsetCommit, 9),
        (ApiKey::OffsetFetch, 9),
        (ApiKey::CreateTopics, 6),
        (ApiKey::DeleteTopics, 5),
        (ApiKey::TxnOffsetCommit, 5),
    ];
    for (key, last) in by_name {
        assert_eq!(highest(key), Some(last), "{key:?}");
    }
    assert_eq!(highest(ApiKey::ConsumerGroupHeartbeat), None, "KIP-848 names topics by id");
    assert_eq!(highest(ApiKey::ConsumerGroupDescribe), None);
    assert_eq!(highest(ApiKey::EndTxn), Some(ApiKey::EndTxn.spec().advertise_max), "others are as ever");
    let levels: Vec<_> = answer.finalized_features.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(levels, ["streams.version", "transaction.version"]);
}

#[test]
fn a_text_that_quotes_a_long_name_still_fits_an_old_version() {
    let mut broker = broker();
    let on = broker.connect();
    let long = "\"".repeat(32_000);
    let stamp = broker.init(on, &long, 60_000);
    let sent = broker.produce(on, 8, None, T, plain(stamp, 0, &["x"])).answer();
    assert_eq!(sent.error_code.get(), 48);
    assert!(sent.error_message.unwrap().len() <= 1000);
}
