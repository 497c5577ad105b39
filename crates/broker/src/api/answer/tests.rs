//! The table against kafka-facts 3.3 to 3.7 and design sections 3 and 4: every refusal, every API, every version.

use semel_eos::{Refusal, txn::TransactionState};
use semel_events::Outcome;
use semel_types::{
    ConnectionNumber, DurationMs, GroupId, Offset, PartitionHandle, ProducerEpoch, ProducerId, ProducerStamp,
    Sequence, SequenceRange, TransactionalId,
};
use semel_wire::API_TABLE;

use super::*;

const STAMP: ProducerStamp = ProducerStamp { id: ProducerId::new(7), epoch: ProducerEpoch::new(1) };

/// A rule of the documents: from the first version that knows a code on, that code; before it another one.
#[derive(Clone, Copy)]
enum Rule {
    Always(i16),
    /// 47 everywhere, but 90 on the coordinator's own APIs from the version on that knows it.
    Fenced,
    /// 120 where the version has it, else this.
    Abortable(i16),
    /// 120 where the version has it, else as fenced.
    AbortableElseFenced,
    Closed,
}

/// One of each refusal, with its rule.
fn refusals() -> Vec<(Refusal, Rule)> {
    let id = TransactionalId::from("tx");
    let sent = SequenceRange::of(Sequence::ZERO, 2);
    let partition = PartitionHandle::new(3);
    let fenced = Refusal::Fenced { sent: STAMP, current: None, since: None, fence: None };
    let state = TransactionState::Empty;
    vec![
        (fenced, Rule::Fenced),
        (Refusal::UnknownTransactionalId { id: id.clone() }, Rule::Always(49)),
        (Refusal::OtherProducer { id: id.clone(), stamp: STAMP, current: STAMP }, Rule::Always(49)),
        (Refusal::PlainBatchOfOwnedId { owner: id.clone() }, Rule::Always(48)),
        (Refusal::WrongOwner { owner: None }, Rule::Always(49)),
        (Refusal::OutOfOrder { expected: Sequence::ZERO, sent }, Rule::Always(45)),
        (Refusal::StrayOfEndedTransaction { sent }, Rule::Always(45)),
        (Refusal::ForgottenProducer { log_start: Offset::ZERO }, Rule::Always(59)),
        (Refusal::AlreadyStored { sent }, Rule::Always(46)),
        (Refusal::OtherPayload { sent, stored_at: Offset::ZERO }, Rule::Always(46)),
        (Refusal::UnknownPartition { partition }, Rule::Always(3)),
        (Refusal::NotInTransaction { partition }, Rule::Abortable(48)),
        (Refusal::GroupNotInTransaction { id: id.clone(), group: GroupId::from("g") }, Rule::Abortable(48)),
        (Refusal::WrongState { id: id.clone(), state, asked: Outcome::Commit }, Rule::Always(48)),
        (Refusal::AbortedMeanwhile { id: id.clone(), fence: None }, Rule::AbortableElseFenced),
        (Refusal::ConcurrentTransactions { id: id.clone() }, Rule::Always(51)),
        (Refusal::TooManyPartitions { id: id.clone(), limit: 1 }, Rule::Abortable(44)),
        (Refusal::CommitByMarker { id }, Rule::Always(48)),
        (Refusal::EmptyTransactionalId, Rule::Always(42)),
        (Refusal::HalfAPair, Rule::Always(42)),
        (
            Refusal::InvalidTimeout { timeout: DurationMs::from_ms(0), max: DurationMs::from_ms(1) },
            Rule::Always(50),
        ),
        (
            Refusal::SupersededConnection {
                connection: ConnectionNumber::new(1),
                highest: ConnectionNumber::new(2),
            },
            Rule::Closed,
        ),
    ]
}

/// Section 3.3 to 3.7 of kafka-facts, written down a second time: 90 by version.
fn fenced_code(api: ApiKey, version: i16) -> i16 {
    let knows = (api == ApiKey::InitProducerId && version >= 4)
        || (api == ApiKey::AddPartitionsToTxn && version >= 2)
        || (api == ApiKey::AddOffsetsToTxn && version >= 2)
        || (api == ApiKey::EndTxn && version >= 2);
    if knows { 90 } else { 47 }
}

/// The same for 120.
fn knows_abortable(api: ApiKey, version: i16) -> bool {
    (api == ApiKey::Produce && version >= 11)
        || (api == ApiKey::InitProducerId && version >= 5)
        || (api == ApiKey::AddPartitionsToTxn && version >= 4)
        || (api == ApiKey::AddOffsetsToTxn && version >= 4)
        || (api == ApiKey::EndTxn && version >= 4)
        || (api == ApiKey::TxnOffsetCommit && version >= 4)
}

fn expected(rule: Rule, api: ApiKey, version: i16) -> Option<i16> {
    let abortable = |otherwise| if knows_abortable(api, version) { 120 } else { otherwise };
    match rule {
        Rule::Always(code) => Some(code),
        Rule::Fenced => Some(fenced_code(api, version)),
        Rule::Abortable(otherwise) => Some(abortable(otherwise)),
        Rule::AbortableElseFenced => Some(abortable(fenced_code(api, version))),
        Rule::Closed => None,
    }
}

#[test]
fn every_refusal_has_its_code_at_every_api_and_version() {
    let mut combinations = 0;
    for (refusal, rule) in refusals() {
        for spec in API_TABLE {
            for version in spec.decodable() {
                let found = match answer(&refusal, At { api: spec.key, version }) {
                    Answered::Code(code) => Some(code.get()),
                    Answered::Close => None,
                };
                assert_eq!(found, expected(rule, spec.key, version), "{refusal} at {} {version}", spec.name);
                assert_ne!(found, Some(-1), "-1 is never an answer");
                combinations += 1;
            }
        }
    }
    assert!(combinations > 22 * 19, "every combination was asked: {combinations}");
}

#[test]
fn a_refusal_is_never_told_as_success() {
    for (refusal, _) in refusals() {
        for spec in API_TABLE {
            let at = At { api: spec.key, version: spec.decode_max };
            assert_ne!(answer(&refusal, at), Answered::Code(ErrorCode::None), "{refusal}");
        }
    }
}

#[test]
fn an_unknown_group_with_a_generation_is_22_or_69_by_version() {
    let told =
        |api, version| group_answer(semel_groups::Refusal::UnknownGeneration, At { api, version }).get();
    for version in 2..=10 {
        assert_eq!(told(ApiKey::OffsetCommit, version), if version >= 9 { 69 } else { 22 });
    }
    for version in 0..=6 {
        assert_eq!(told(ApiKey::TxnOffsetCommit, version), if version >= 6 { 69 } else { 22 });
        let at = At { api: ApiKey::TxnOffsetCommit, version };
        assert_eq!(group_answer(semel_groups::Refusal::UnknownMember, at).get(), 25);
    }
}

#[test]
fn a_refusal_of_a_group_has_kafkas_code() {
    use semel_groups::Refusal as R;
    let table = [
        (R::InvalidGroupId, 24),
        (R::InvalidSessionTimeout, 26),
        (R::MemberIdRequired, 79),
        (R::GroupFull, 81),
        (R::AssignmentTooLarge, 42),
        (R::InconsistentProtocol, 23),
        (R::FencedInstance, 82),
        (R::IllegalGeneration, 22),
        (R::UnknownMember, 25),
        (R::RebalanceInProgress, 27),
        (R::UnknownGroup, 69),
        (R::NonEmpty, 68),
        (R::Subscribed, 86),
        (R::UnstableOffset, 88),
    ];
    for (refusal, code) in table {
        for spec in API_TABLE {
            let at = At { api: spec.key, version: spec.decode_max };
            assert_eq!(group_answer(refusal, at).get(), code, "{refusal}");
        }
    }
}

#[test]
fn produce_names_the_log_start_with_refusals_of_the_append_only() {
    for code in [45, 46, 47, 48, 59, 87] {
        assert!(names_log_start(ErrorCode::from_wire(code).unwrap()), "{code}");
    }
    for code in [2, 3, 10, 17, 18, 21, 49, 53, 56, 100, 120] {
        assert!(!names_log_start(ErrorCode::from_wire(code).unwrap()), "{code}");
    }
}
