//! What administrators are told of transactions and producers (KIP-664, KIP-994, KIP-1152).

use semel_types::{PartitionIndex, ProducerStamp};
use semel_wire::{
    RawProducerId, Text,
    api::{describe_producers::*, describe_transactions::*, list_transactions::*},
};

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker
}

fn describe(broker: &mut Broker, ids: &[&str]) -> Vec<TransactionDescription> {
    let on = broker.connect();
    let transactional_ids = ids.iter().map(|id| Text::from(*id)).collect();
    let request = DescribeTransactionsRequest { transactional_ids };
    broker.ask::<_, DescribeTransactionsResponse>(on, 0, &request).answer().transaction_states
}

fn list(broker: &mut Broker, version: i16, request: &ListTransactionsRequest) -> ListTransactionsResponse {
    let on = broker.connect();
    broker.ask(on, version, request).answer()
}

/// The ids that a request lists.
fn listed(broker: &mut Broker, version: i16, request: &ListTransactionsRequest) -> Vec<String> {
    let response = list(broker, version, request);
    assert_eq!(response.error_code.get(), 0);
    response.transaction_states.iter().map(|state| state.transactional_id.to_string()).collect()
}

fn producers(broker: &mut Broker, place: Place<'_>) -> (i16, Vec<ProducerDescription>) {
    let on = broker.connect();
    let partition_indexes = vec![PartitionIndex::new(place.1)];
    let topic = DescribeProducersTopic { name: Text::from(place.0), partition_indexes };
    let request = DescribeProducersRequest { topics: vec![topic] };
    let mut response: DescribeProducersResponse = broker.ask(on, 0, &request).answer();
    let partition = response.topics.remove(0).partitions.remove(0);
    (partition.error_code.get(), partition.active_producers)
}

/// Ids in every state: open, committed, aborted, empty.
fn four_ids(broker: &mut Broker) -> [ProducerStamp; 4] {
    let on = broker.connect();
    let stamps = ["open", "committed", "aborted", "empty"].map(|id| broker.init(on, id, 60_000));
    for (id, stamp) in ["open", "committed", "aborted"].into_iter().zip(stamps) {
        broker.open_with(on, id, stamp, T, id);
    }
    assert_eq!(broker.commit(on, "committed", stamps[1]), 0);
    assert_eq!(broker.abort(on, "aborted", stamps[2]), 0);
    stamps
}

#[test]
fn describe_transactions_tells_state_identity_timeout_start_and_partitions() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 30_000);
    let empty = describe(&mut broker, &["tx"]).remove(0);
    assert_eq!((empty.error_code.get(), &*empty.transaction_state), (0, "Empty"));
    assert_eq!((empty.transaction_timeout_ms, empty.transaction_start_time_ms), (30_000, -1));
    assert_eq!(pair(empty.producer_id, empty.producer_epoch), stamp);
    assert!(empty.topics.is_empty());

    broker.pass(500);
    let started = broker.wall_ms();
    assert_eq!(broker.add_all(on, 3, "tx", stamp, &[("t", 1), T]).answer(), [0, 0]);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "my-group"), 0);
    broker.pass(2000);
    let open = describe(&mut broker, &["tx"]).remove(0);
    assert_eq!((&*open.transaction_state, open.transaction_start_time_ms), ("Ongoing", started));
    let topics: Vec<_> = open.topics.iter().map(|topic| (&*topic.topic, topic.partitions.clone())).collect();
    let (zero, one) = (PartitionIndex::new(0), PartitionIndex::new(1));
    // Java: Math.abs("my-group".hashCode()) % 50 == 12
    assert_eq!(topics, [("__consumer_offsets", vec![PartitionIndex::new(12)]), ("t", vec![zero, one])]);

    assert_eq!(broker.commit(on, "tx", stamp), 0);
    let ended = describe(&mut broker, &["tx"]).remove(0);
    assert_eq!((&*ended.transaction_state, ended.topics.len()), ("CompleteCommit", 0));
}

#[test]
fn describe_transactions_knows_nothing_of_an_empty_an_unknown_and_an_expired_id() {
    let mut broker = broker();
    let on = broker.connect();
    broker.init(on, "tx", 60_000);
    let codes = |states: Vec<TransactionDescription>| -> Vec<_> {
        states.iter().map(|state| (state.transactional_id.to_string(), state.error_code.get())).collect()
    };
    let found = codes(describe(&mut broker, &["tx", "", "nobody", "tx"]));
    assert_eq!(found, [("tx".into(), 0), (String::new(), 42), ("nobody".into(), 105)], "each once");
    broker.pass(8 * 86_400_000);
    assert_eq!(codes(describe(&mut broker, &["tx"])), [("tx".into(), 105)]);
}

#[test]
fn describe_transactions_leaves_out_a_deleted_topic() {
    let mut broker = broker();
    broker.topic("gone", 1);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add_all(on, 3, "tx", stamp, &[T, ("gone", 0)]).answer(), [0, 0]);
    broker.delete_topic("gone");
    let open = describe(&mut broker, &["tx"]).remove(0);
    assert_eq!(open.topics.iter().map(|topic| &*topic.topic).collect::<Vec<_>>(), ["t"]);
}

#[test]
fn list_transactions_filters_by_state_and_tells_unknown_names() {
    let mut broker = broker();
    four_ids(&mut broker);
    for version in 0..=2 {
        let all = listed(&mut broker, version, &ListTransactionsRequest::default());
        assert_eq!(all, ["aborted", "committed", "empty", "open"]);
        for (states, expected) in [
            (&["Ongoing"][..], &["open"][..]),
            (&["CompleteCommit", "CompleteAbort"], &["aborted", "committed"]),
            (&["Empty"], &["empty"]),
            (&["PrepareCommit", "PrepareAbort", "PrepareEpochFence", "Dead"], &[]),
        ] {
            let state_filters = states.iter().map(|state| Text::from(*state)).collect();
            let request = ListTransactionsRequest { state_filters, ..Default::default() };
            assert_eq!(listed(&mut broker, version, &request), expected, "{states:?}");
        }
    }
    for (states, expected) in [(vec!["ongoing"], vec![]), (vec!["ongoing", "Ongoing"], vec!["open"])] {
        let state_filters = states.iter().map(|state| Text::from(*state)).collect();
        let request = ListTransactionsRequest { state_filters, ..Default::default() };
        let response = list(&mut broker, 0, &request);
        assert_eq!(response.unknown_state_filters, [Text::from("ongoing")]);
        let ids: Vec<_> = response.transaction_states.iter().map(|one| &*one.transactional_id).collect();
        assert_eq!(ids, expected, "an unknown name matches nothing");
    }
}

#[test]
fn list_transactions_tells_identity_and_state_and_filters_by_producer() {
    let mut broker = broker();
    let stamps = four_ids(&mut broker);
    let producer_id_filters = vec![stamps[0].id.into(), stamps[3].id.into(), RawProducerId(-5)];
    let request = ListTransactionsRequest { producer_id_filters, ..Default::default() };
    let found = list(&mut broker, 0, &request).transaction_states;
    let found: Vec<_> = found.iter().map(|one| (one.producer_id, &*one.transaction_state)).collect();
    assert_eq!(found, [(stamps[3].id.into(), "Empty"), (stamps[0].id.into(), "Ongoing")]);
    let request =
        ListTransactionsRequest { producer_id_filters: vec![RawProducerId(-1)], ..Default::default() };
    assert!(listed(&mut broker, 0, &request).is_empty());
}

#[test]
fn list_transactions_filters_by_the_age_of_the_open_transaction() {
    let mut broker = broker();
    four_ids(&mut broker);
    broker.pass(1000);
    for (duration_filter, expected) in [(-1, 4), (i64::MIN, 4), (0, 1), (999, 1), (1000, 0), (i64::MAX, 0)] {
        let request = ListTransactionsRequest { duration_filter, ..Default::default() };
        assert_eq!(listed(&mut broker, 1, &request).len(), expected, "longer than {duration_filter}");
        assert_eq!(listed(&mut broker, 0, &request).len(), 4, "version 0 has no such filter");
    }
}

#[test]
fn list_transactions_filters_by_a_pattern_of_the_whole_id() {
    let mut broker = broker();
    four_ids(&mut broker);
    let mut matching = |pattern: Option<&str>| {
        let pattern = pattern.map(Text::from);
        let request = ListTransactionsRequest { transactional_id_pattern: pattern, ..Default::default() };
        list(&mut broker, 2, &request)
    };
    for (pattern, expected) in [
        (None, 4),
        (Some(""), 4),
        (Some(".*"), 4),
        (Some("open"), 1),
        (Some("ope"), 0),
        (Some("open|empty"), 2),
        (Some("[a-c].*ed"), 2),
        (Some("(?i)OPEN"), 1),
    ] {
        let response = matching(pattern);
        assert_eq!(
            (response.error_code.get(), response.transaction_states.len()),
            (0, expected),
            "{pattern:?}"
        );
    }
    for bad in ["(", "a)(b", "[", "*", r"\1", "(?=open)", "(((a{1000}){1000}){1000})"] {
        let response = matching(Some(bad));
        assert_eq!((response.error_code.get(), response.transaction_states.len()), (128, 0), "{bad}");
    }
}

#[test]
fn describe_producers_tells_epoch_sequence_time_and_open_transaction() {
    let mut broker = broker();
    let on = broker.connect();
    assert_eq!(producers(&mut broker, T), (0, vec![]));
    assert_eq!(producers(&mut broker, ("t", 2)).0, 3);
    assert_eq!(producers(&mut broker, ("nowhere", 0)).0, 3);
    let plain_one = broker.init_idempotent(on);
    broker.send(on, T, plain(plain_one, 0, &["a", "b"]));
    let written = broker.wall_ms();
    let stamp = broker.init(on, "tx", 60_000);
    broker.pass(10);
    broker.open_with(on, "tx", stamp, T, "open");
    let described =
        |stamp: ProducerStamp, last_sequence, last_timestamp, coordinator_epoch, open| ProducerDescription {
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.get().into(),
            last_sequence,
            last_timestamp,
            coordinator_epoch,
            current_txn_start_offset: semel_wire::RawOffset(open),
        };
    let shard_epoch = broker.shard_epoch();
    let expected =
        [described(plain_one, 1, written, -1, -1), described(stamp, 0, written + 10, shard_epoch, 2)];
    assert_eq!(producers(&mut broker, T), (0, expected.to_vec()));
    broker.restart();
    let shard_epoch = broker.shard_epoch();
    let on = broker.connect();
    let expected =
        [described(plain_one, 1, written, -1, -1), described(stamp, 0, written + 10, shard_epoch, 2)];
    assert_eq!(producers(&mut broker, T).1, expected, "also after a restart");
    let next = broker.end_v2(on, "tx", stamp, false);
    let expected = described(next, -1, written + 10, shard_epoch, -1);
    assert_eq!(
        producers(&mut broker, T).1[1],
        expected,
        "the epoch that may write, of which nothing is there yet"
    );
}

#[test]
fn a_producer_after_long_silence_is_not_active() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    broker.send(on, T, plain(stamp, 0, &["a"]));
    broker.pass(2 * 86_400_000);
    assert_eq!(producers(&mut broker, T), (0, vec![]));
}

#[test]
fn an_admin_aborts_what_describe_producers_showed() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "hanging");
    let seen = producers(&mut broker, T).1.remove(0);
    let epoch = i16::try_from(seen.producer_epoch).unwrap();
    let shown = pair(seen.producer_id, semel_wire::RawProducerEpoch(epoch));
    let admin = broker.connect();
    assert_eq!(broker.write_marker(admin, shown, false, seen.coordinator_epoch, T), 0);
    assert_eq!(&*describe(&mut broker, &["tx"])[0].transaction_state, "CompleteAbort");
    assert_eq!(broker.end_offset(T, 1), 2);
    assert_eq!(broker.write_marker(admin, shown, false, seen.coordinator_epoch, T), 47, "not twice");
    let late = broker.send_in(on, "tx", T, transactional(stamp, 1, &["late"]));
    assert_eq!(late.error_code.get(), 47);
}

#[test]
fn a_question_is_answered_from_the_moment_it_was_asked() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "v");
    for _ in 0..2 {
        assert_eq!(&*describe(&mut broker, &["tx"])[0].transaction_state, "Ongoing");
    }
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(&*describe(&mut broker, &["tx"])[0].transaction_state, "CompleteCommit");
}

/// State, partitions and topics held, open since, of one id; the code alone if there is one.
fn stage(broker: &mut Broker, id: &str) -> (i16, String, usize, Option<i64>) {
    let described = describe(broker, &[id]).remove(0);
    let request = ListTransactionsRequest {
        transactional_id_pattern: Some(Text::from(id)),
        state_filters: vec![described.transaction_state.clone()],
        ..Default::default()
    };
    let found = if described.error_code.is_error() { vec![] } else { listed(broker, 2, &request) };
    assert_eq!(found.len(), usize::from(!described.error_code.is_error()), "list and describe agree");
    let held = described.topics.iter().map(|topic| topic.partitions.len()).sum();
    let writers = producers(broker, T).1;
    let mine = writers.iter().find(|writer| writer.producer_id == described.producer_id);
    let open = mine.map(|writer| writer.current_txn_start_offset.get());
    (described.error_code.get(), described.transaction_state.to_string(), held, open)
}

#[test]
fn b91_describe_and_list_tell_the_truth_at_every_stage() {
    let mut broker = broker();
    let on = broker.connect();
    assert_eq!(stage(&mut broker, "tx"), (105, String::new(), 0, None));
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(stage(&mut broker, "tx"), (0, "Empty".into(), 0, None));
    broker.open_with(on, "tx", stamp, T, "1");
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "G"), 0);
    assert_eq!(stage(&mut broker, "tx"), (0, "Ongoing".into(), 2, Some(0)));
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(stage(&mut broker, "tx"), (0, "CompleteCommit".into(), 0, Some(-1)));
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    broker.send_in(on, "tx", T, transactional(stamp, 1, &["2"]));
    broker.restart();
    assert_eq!(stage(&mut broker, "tx"), (0, "Ongoing".into(), 1, Some(2)), "also after a restart");
    broker.pass(60_000);
    assert_eq!(stage(&mut broker, "tx"), (0, "CompleteAbort".into(), 0, Some(-1)), "timed out");
    broker.pass(8 * 86_400_000);
    assert_eq!(stage(&mut broker, "tx"), (105, String::new(), 0, None), "expired");
}

#[test]
fn b93_the_holder_of_the_last_stable_offset_is_found_in_two_calls() {
    let mut broker = broker();
    let on = broker.connect();
    broker.send(on, T, anonymous(&["plain"]));
    let stamp = broker.init(on, "holder", 60_000);
    broker.open_with(on, "holder", stamp, T, "open");
    let other = broker.init(on, "other", 60_000);
    broker.open_with(on, "other", other, T, "later");
    let stable = broker.end_offset(T, 1);
    assert!(stable < broker.end_offset(T, 0));
    let writers = producers(&mut broker, T).1;
    let holder = writers.iter().find(|writer| writer.current_txn_start_offset.get() == stable).unwrap();
    let producer_id_filters = vec![holder.producer_id];
    let request = ListTransactionsRequest { producer_id_filters, ..Default::default() };
    assert_eq!(listed(&mut broker, 2, &request), ["holder"]);
}
