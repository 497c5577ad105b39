//! The codes of the transaction APIs by API, version, state and identity, at the wire: kafka-facts 3.3 to 3.8 with the
//! changes of the design, written down a second time.

use semel_types::{PartitionIndex, ProducerEpoch, ProducerId, ProducerStamp};
use semel_wire::{
    Text,
    api::add_partitions_to_txn::{
        AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopic,
        AddPartitionsToTxnTransaction,
    },
    api::write_txn_markers::{
        WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
    },
};

use crate::support::*;

const T: Place<'static> = ("t", 0);

/// What a request claims to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Claim {
    Current,
    OldEpoch,
    /// Only the coordinator makes epochs.
    NewerEpoch,
    OtherProducer,
    /// The pair of a transactional id that was never initialized.
    UnknownId,
    /// The transactional id "".
    EmptyId,
}

const CLAIMS: [Claim; 6] = [
    Claim::Current,
    Claim::OldEpoch,
    Claim::NewerEpoch,
    Claim::OtherProducer,
    Claim::UnknownId,
    Claim::EmptyId,
];

/// Whether a transaction with partition 0 and group "g" is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stands {
    Empty,
    Open,
    Committed,
    Aborted,
}

const STATES: [Stands; 4] = [Stands::Empty, Stands::Open, Stands::Committed, Stands::Aborted];

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Api {
    Add,
    Verify,
    AddOffsets,
    OffsetCommit,
    Commit,
    Abort,
    /// A batch for partition 0.
    Produce,
    /// InitProducerId without a pair.
    Init,
    /// InitProducerId with the pair claimed.
    Recover,
    /// WriteTxnMarkers for partition 0, which names no transactional id.
    MarkAborted,
    MarkCommitted,
}

const APIS: [(Api, std::ops::RangeInclusive<i16>); 11] = [
    (Api::Add, 0..=5),
    (Api::Verify, 4..=5),
    (Api::AddOffsets, 0..=4),
    (Api::OffsetCommit, 0..=6),
    (Api::Commit, 0..=5),
    (Api::Abort, 0..=5),
    (Api::Produce, 3..=13),
    (Api::Init, 0..=5),
    (Api::Recover, 3..=5),
    (Api::MarkAborted, 1..=2),
    (Api::MarkCommitted, 1..=2),
];

struct Scene {
    broker: Broker,
    id: &'static str,
    stamp: ProducerStamp,
}

fn scene(claim: Claim, stands: Stands) -> Scene {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let on = broker.connect();
    let old = broker.init(on, "tx", 60_000);
    let current = broker.init(on, "tx", 60_000);
    if stands != Stands::Empty {
        broker.open_with(on, "tx", current, T, "v");
        assert_eq!(broker.add_offsets(on, 3, "tx", current, "g"), 0);
    }
    match stands {
        Stands::Empty | Stands::Open => {}
        Stands::Committed => assert_eq!(broker.commit(on, "tx", current), 0),
        Stands::Aborted => assert_eq!(broker.abort(on, "tx", current), 0),
    }
    let other = ProducerStamp { id: ProducerId::new(5), ..current };
    let (id, stamp) = match claim {
        Claim::Current => ("tx", current),
        Claim::OldEpoch => ("tx", old),
        Claim::NewerEpoch => ("tx", ProducerStamp { epoch: ProducerEpoch::new(9), ..current }),
        Claim::OtherProducer => ("tx", other),
        Claim::UnknownId => ("unknown", current),
        Claim::EmptyId => ("", current),
    };
    Scene { broker, id, stamp }
}

fn batched(scene: &mut Scene, version: i16, verify_only: bool) -> i16 {
    let partitions = vec![PartitionIndex::new(0)];
    let transaction = AddPartitionsToTxnTransaction {
        transactional_id: Text::from(scene.id),
        producer_id: scene.stamp.id.into(),
        producer_epoch: scene.stamp.epoch.into(),
        verify_only,
        topics: vec![AddPartitionsToTxnTopic { name: Text::from("t"), partitions }],
    };
    let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
    let on = scene.broker.connect();
    let response: AddPartitionsToTxnResponse = scene.broker.ask(on, version, &request).answer();
    response.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code.get()
}

fn offset_commit(scene: &mut Scene, version: i16) -> i16 {
    let mut request = txn_offset_commit_request(scene.id, scene.stamp, "g", &[(T, 5)]);
    let id = scene.broker.state().catalog.topic("t").map(|topic| topic.id());
    request.topics[0].topic_id = id.filter(|_| version >= 6).unwrap_or_default();
    let on = scene.broker.connect();
    scene.broker.ask_txn_offset_commit(on, version, &request).answer()[0]
}

fn mark(scene: &mut Scene, version: i16, commit: bool) -> i16 {
    let marker = WritableTxnMarker {
        producer_id: scene.stamp.id.into(),
        producer_epoch: scene.stamp.epoch.into(),
        transaction_result: commit,
        topics: vec![WritableTxnMarkerTopic {
            name: Text::from("t"),
            partition_indexes: vec![PartitionIndex::new(0)],
        }],
        ..Default::default()
    };
    let on = scene.broker.connect();
    let request = WriteTxnMarkersRequest { markers: vec![marker] };
    let response: WriteTxnMarkersResponse = scene.broker.ask(on, version, &request).answer();
    response.markers[0].topics[0].partitions[0].error_code.get()
}

fn ask(api: Api, version: i16, scene: &mut Scene) -> i16 {
    let on = scene.broker.connect();
    let (id, stamp) = (scene.id, scene.stamp);
    match api {
        Api::Add if version < 4 => scene.broker.add_all(on, version, id, stamp, &[T]).answer()[0],
        Api::Add => batched(scene, version, false),
        Api::Verify => batched(scene, version, true),
        Api::AddOffsets => scene.broker.add_offsets(on, version, id, stamp, "g"),
        Api::OffsetCommit => offset_commit(scene, version),
        Api::Commit | Api::Abort => {
            scene.broker.end_raw(on, version, id, stamp, api == Api::Commit).answer().error_code.get()
        }
        Api::Produce => {
            let batch = transactional(stamp, 1, &["next"]);
            scene.broker.produce(on, version, Some(id), T, batch).answer().error_code.get()
        }
        Api::Init | Api::Recover => {
            let carried = (api == Api::Recover).then_some(stamp);
            scene.broker.init_raw(on, version, Some(id), 60_000, carried).error_code.get()
        }
        Api::MarkAborted | Api::MarkCommitted => mark(scene, version, api == Api::MarkCommitted),
    }
}

/// The code of an epoch that is not current.
const fn fenced(api: Api, version: i16) -> i16 {
    match api {
        Api::Produce | Api::OffsetCommit | Api::MarkAborted | Api::MarkCommitted => 47,
        Api::Init => 0,
        Api::Recover => {
            if version >= 4 {
                90
            } else {
                47
            }
        }
        Api::Add | Api::Verify | Api::AddOffsets | Api::Commit | Api::Abort => {
            if version >= 2 {
                90
            } else {
                47
            }
        }
    }
}

/// What the current identity is told.
fn current(api: Api, version: i16, stands: Stands) -> i16 {
    let open = stands == Stands::Open;
    match api {
        Api::Add | Api::AddOffsets | Api::Init | Api::Recover | Api::MarkAborted => 0,
        // With nothing open there is nothing that could be torn.
        Api::MarkCommitted if open => 48,
        Api::MarkCommitted => 0,
        Api::Verify => {
            if open {
                0
            } else {
                120
            }
        }
        Api::OffsetCommit if open || version >= 5 => 0,
        Api::OffsetCommit => {
            if version >= 4 {
                120
            } else {
                48
            }
        }
        // Nothing is stored of the identity here, so its second record is early; or it follows the first one.
        Api::Produce if stands == Stands::Empty => 45,
        Api::Produce if open || version >= 12 => 0,
        Api::Produce => {
            if version >= 11 {
                120
            } else {
                48
            }
        }
        Api::Commit => match stands {
            Stands::Open => 0,
            Stands::Committed if version < 5 => 0,
            Stands::Committed | Stands::Aborted | Stands::Empty => 48,
        },
        // Version 2 cannot know whether anything was added: its abort succeeds and bumps.
        Api::Abort if version >= 5 => 0,
        Api::Abort => match stands {
            Stands::Open | Stands::Aborted => 0,
            Stands::Committed | Stands::Empty => 48,
        },
    }
}

fn expected(api: Api, version: i16, claim: Claim, stands: Stands) -> i16 {
    match claim {
        // Markers name only the producer; of an id without owner nothing is open.
        Claim::UnknownId | Claim::EmptyId if matches!(api, Api::MarkAborted | Api::MarkCommitted) => {
            current(api, version, stands)
        }
        Claim::OtherProducer if matches!(api, Api::MarkAborted | Api::MarkCommitted) => 0,
        // Whoever takes an id over proves nothing, and a new id is given whatever pair is carried.
        Claim::OtherProducer | Claim::UnknownId if api == Api::Init => 0,
        Claim::OtherProducer if api == Api::Recover => fenced(api, version),
        Claim::UnknownId if api == Api::Recover => 0,
        Claim::Current => current(api, version, stands),
        Claim::OldEpoch | Claim::NewerEpoch => fenced(api, version),
        Claim::OtherProducer | Claim::UnknownId => 49,
        // Produce and its batches know owners, not malformed names.
        Claim::EmptyId => {
            if api == Api::Produce {
                49
            } else {
                42
            }
        }
    }
}

#[test]
fn every_transaction_api_answers_each_identity_in_each_state_as_its_version_says() {
    let mut cells = 0;
    for (api, versions) in APIS {
        for version in versions {
            for claim in CLAIMS {
                for stands in STATES {
                    let told = ask(api, version, &mut scene(claim, stands));
                    let cell = format!("{api:?} {version}: {claim:?} in {stands:?}");
                    assert_eq!(told, expected(api, version, claim, stands), "{cell}");
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 56 * 6 * 4);
}

#[test]
fn a_refused_request_of_any_api_and_version_leaves_the_owners_transaction_alone() {
    for (api, versions) in APIS {
        for version in versions {
            for claim in [Claim::OldEpoch, Claim::NewerEpoch, Claim::OtherProducer, Claim::UnknownId] {
                if expected(api, version, claim, Stands::Open) == 0 {
                    continue; // It is not refused.
                }
                let mut scene = scene(claim, Stands::Open);
                let owner = scene.broker.state().eos.transactions().get(&"tx".into()).unwrap().identity;
                assert_ne!(ask(api, version, &mut scene), 0);
                let on = scene.broker.connect();
                assert_eq!(scene.broker.commit(on, "tx", owner), 0, "{api:?} {version}: {claim:?}");
                assert_eq!(scene.broker.committed(T), ["v"]);
            }
        }
    }
}

#[test]
fn init_producer_id_tells_a_wrong_pair_47_or_90_by_version_in_every_state() {
    for stands in STATES {
        for claim in [Claim::OldEpoch, Claim::NewerEpoch, Claim::OtherProducer] {
            for version in 3..=5 {
                let mut scene = scene(claim, stands);
                let on = scene.broker.connect();
                let response = scene.broker.init_raw(on, version, Some("tx"), 60_000, Some(scene.stamp));
                let expected = if version >= 4 { 90 } else { 47 };
                assert_eq!(response.error_code.get(), expected, "{version}: {claim:?} in {stands:?}");
                assert!(response.producer_id.known().is_none(), "an error carries no identity");
            }
        }
    }
}

#[test]
fn a_batch_of_transactions_is_answered_one_by_one_and_a_bad_one_harms_no_other() {
    let mut scene = scene(Claim::Current, Stands::Empty);
    let other = scene.broker.connect();
    let second = scene.broker.init(other, "second", 60_000);
    let transaction = |id: &str, stamp: ProducerStamp, verify_only, topic: &str| {
        let partitions = vec![PartitionIndex::new(0)];
        AddPartitionsToTxnTransaction {
            transactional_id: Text::from(id),
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.into(),
            verify_only,
            topics: vec![AddPartitionsToTxnTopic { name: Text::from(topic), partitions }],
        }
    };
    let stamp = scene.stamp;
    let transactions = vec![
        transaction("tx", stamp, true, "t"),
        transaction("tx", stamp, false, "t"),
        transaction("tx", stamp, true, "t"),
        transaction("second", stamp, false, "t"),
        transaction("second", second, false, "nowhere"),
        transaction("second", second, false, "t"),
    ];
    let request = AddPartitionsToTxnRequest { transactions, ..Default::default() };
    for version in 4..=5 {
        let on = scene.broker.connect();
        let response: AddPartitionsToTxnResponse = scene.broker.ask(on, version, &request).answer();
        let results = response.results_by_transaction.iter().flat_map(|one| &one.topic_results);
        let codes: Vec<_> =
            results.map(|topic| topic.results_by_partition[0].partition_error_code.get()).collect();
        let first = if version == 4 { 120 } else { 0 };
        assert_eq!(codes, [first, 0, 0, 49, 3, 0], "in the order of the request, each on what came before");
    }
}
