//! Produce (key 0), versions 3 to 13 (0 is advertised, KAFKA-18659; requests below 3 close the connection).
//!
//! Behaviour: the connection's task checks each batch's framing, checksum and count ([`route`]); the node judges the
//! batches one after another ([`run`]) in the order of design section 3: framing and topic (retriable), then the
//! core's judgement, then, only for a batch that would be appended, the definite refusals (10, 18, 87), room (56), and
//! the transaction. So a retry is answered with its first offset whatever the topic's limits are by now, and also on a
//! full disk. acks 1 and -1 mean the same durability; acks 0 is judged alike, never answered, and an error closes the
//! connection; other acks are 21 for every partition.
//! Version notes: 8 carries a text and the records at fault; 11 knows 120; 12 adds its partition to the transaction
//! (KIP-890 part 2); 13 names topics by id.
//! Unlike Kafka: a transactional batch without producer id is 49, a producer id without epoch 87 (Kafka takes both);
//! an unknown compression number is 76; a batch is at most 2^31 bytes. A record without key on a compacted topic is
//! refused in uncompressed batches only. Topics are not made here: clients ask for metadata first, as with Kafka.

use std::sync::Arc;

use bytes::Bytes;
use semel_eos::{BatchStamp, Judgement, ProduceScope, Refusal};
use semel_events::Protocol;
use semel_log::{Payload, Room, RoomClass};
use semel_types::{
    ErrorCode, Offset, PartitionHandle, PartitionIndex, ProducerStamp, TopicId, TransactionalId, WallTime,
    mutation::{Mutation, mutated},
};
use semel_wire::{
    ApiKey, RawOffset, Text, WireCode,
    api::produce::{
        ProducePartition, ProducePartitionResponse, ProduceRecordError, ProduceRequest, ProduceResponse,
        ProduceTopicResponse,
    },
    batch::{Batch, BatchError, Compression},
};

use super::{
    Route,
    answer::{Answered, At, answer, names_log_start},
};
use crate::{
    call::{Asked, Call},
    catalog::Topic,
    common::message,
    facts::Facts,
    node::{Handled, Step},
    topic_name,
};

/// A Produce request whose batches were checked.
#[derive(Clone, Debug)]
pub struct ProduceCall {
    /// The API's version.
    pub version: i16,
    /// The producer's transactional id, if it has one.
    pub transactional_id: Option<TransactionalId>,
    /// acks 0: nothing is answered.
    pub silent: bool,
    /// The batches by topic.
    pub topics: Vec<ProduceTopicCall>,
}

/// The batches of one topic.
#[derive(Clone, Debug)]
pub struct ProduceTopicCall {
    /// Its name, below version 13.
    pub name: Text,
    /// Its id, from version 13.
    pub id: TopicId,
    /// By partition: a batch, or what is wrong with it.
    pub partitions: Vec<(PartitionIndex, Result<CheckedBatch, BatchFault>)>,
}

/// A batch whose framing, checksum and count are right.
#[derive(Clone, Debug)]
pub struct CheckedBatch {
    batch: Batch,
    count: u32,
    stamp: Option<BatchStamp>,
}

/// What is wrong with a batch, whoever sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchFault {
    /// The code to answer.
    pub code: ErrorCode,
    /// Why, for people.
    pub message: String,
}

impl BatchFault {
    fn invalid(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidRecord, message: message.into() }
    }
}

/// Bytes of events that one batch may cause, at most.
const EVENT_BYTES: u64 = 1024;

pub(super) fn route(_facts: &Facts, asked: Asked<ProduceRequest>) -> Route {
    let Asked { version, body } = asked;
    if !(-1..=1).contains(&body.acks) {
        let why = format!("refused a Produce with acks {}", body.acks);
        return Route::Refused(refuse_all(&body, ErrorCode::InvalidRequiredAcks).into(), why);
    }
    let topics = body.topics.into_iter().map(|topic| ProduceTopicCall {
        name: topic.name,
        id: topic.topic_id,
        partitions: topic.partitions.into_iter().map(|partition| checked(partition, version)).collect(),
    });
    let mut call = ProduceCall {
        version,
        transactional_id: body.transactional_id.as_deref().map(TransactionalId::new),
        silent: body.acks == 0,
        topics: topics.collect(),
    };
    if mutated(Mutation::AcksOneNotDeduplicated) && body.acks != -1 {
        let checked = call.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        checked.filter_map(|(_, checked)| checked.as_mut().ok()).for_each(|checked| checked.stamp = None);
    }
    Route::Node(Call::Produce(call))
}

fn refuse_all(request: &ProduceRequest, code: ErrorCode) -> ProduceResponse {
    let responses = request.topics.iter().map(|topic| ProduceTopicResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|partition| failed(partition.index, code)).collect(),
    });
    ProduceResponse { responses: responses.collect(), ..Default::default() }
}

fn checked(partition: ProducePartition, version: i16) -> (PartitionIndex, Result<CheckedBatch, BatchFault>) {
    (partition.index, check(partition.records.unwrap_or_default(), version))
}

/// Framing, checksum, count, and what a client may put into a header. Needs no state.
fn check(records: Bytes, version: i16) -> Result<CheckedBatch, BatchFault> {
    let batch = Batch::parse(records).map_err(framing)?;
    if !mutated(Mutation::CrcNotChecked) {
        batch.verify_crc().map_err(framing)?;
    }
    batch.check_count().map_err(framing)?;
    if batch.base_offset().get() != 0 {
        return Err(BatchFault::invalid(format!("base offset {} should be 0", batch.base_offset().get())));
    }
    if batch.attributes().is_control() {
        return Err(BatchFault::invalid("clients do not write control batches"));
    }
    let unsupported = |message: &str| {
        Err(BatchFault { code: ErrorCode::UnsupportedCompressionType, message: message.to_owned() })
    };
    match batch.attributes().compression() {
        None => return unsupported("unknown compression"),
        Some(Compression::Zstd) if version < 7 => return unsupported("zstd needs Produce 7"),
        Some(_) => {}
    }
    let count = u32::try_from(batch.record_count()).map_err(|_| BatchFault::invalid("no records"))?;
    let stamp = stamp(&batch, count)?;
    Ok(CheckedBatch { batch, count, stamp })
}

fn framing(error: BatchError) -> BatchFault {
    let code = match error {
        BatchError::Length { .. } | BatchError::Crc { .. } => ErrorCode::CorruptMessage,
        // A part of a batch is no batch to Kafka either; 2 would have the client send it again for ever.
        BatchError::Truncated { .. }
        | BatchError::Magic { .. }
        | BatchError::TrailingBytes { .. }
        | BatchError::Count { .. }
        | BatchError::Compressed
        | BatchError::Record { .. }
        | BatchError::NoMarker => ErrorCode::InvalidRecord,
    };
    if let BatchError::TrailingBytes { .. } = error {
        return BatchFault::invalid("a partition takes exactly one batch in a request");
    }
    let message = error.to_string();
    BatchFault { code, message }
}

/// Who wrote the batch; `None` for a producer without id.
fn stamp(batch: &Batch, count: u32) -> Result<Option<BatchStamp>, BatchFault> {
    let transactional = batch.attributes().is_transactional();
    if batch.raw_producer_id().is_nonsense() || batch.raw_producer_epoch().is_nonsense() {
        return Err(BatchFault::invalid("producer id or epoch below -1"));
    }
    let Some(id) = batch.producer_id() else {
        if transactional {
            let message = "a transactional batch without producer id".to_owned();
            return Err(BatchFault { code: ErrorCode::InvalidProducerIdMapping, message });
        }
        return Ok(None);
    };
    let epoch = batch.producer_epoch().ok_or_else(|| BatchFault::invalid("a producer id without epoch"))?;
    let first_sequence =
        batch.base_sequence().ok_or_else(|| BatchFault::invalid("a producer id without sequence"))?;
    let producer = ProducerStamp { id, epoch };
    let checksum = batch.payload_checksum();
    Ok(Some(BatchStamp { producer, first_sequence, count, checksum, transactional }))
}

/// What became of one batch.
enum Fate {
    Appended {
        base_offset: Offset,
    },
    Duplicate {
        base_offset: Offset,
        appended_ms: i64,
    },
    Refused(PartitionRefusal),
    /// Its connection is closed unanswered.
    Close,
}

/// A refusal of one batch.
struct PartitionRefusal {
    code: ErrorCode,
    message: Option<String>,
    records: Vec<ProduceRecordError>,
}

impl PartitionRefusal {
    fn of(code: ErrorCode, message: impl Into<String>) -> Fate {
        Fate::Refused(Self { code, message: Some(message.into()), records: Vec::new() })
    }
}

pub(super) fn run(step: &mut Step<'_>, call: &mut ProduceCall) -> Handled {
    let room = step.room(worst_case_bytes(call), RoomClass::Produce);
    if room == Room::Wait {
        return Handled::Defer;
    }
    let whole = refusal_of_all(call);
    if let Some((_, message)) = whole {
        step.note(format!("refused a Produce: {message}"));
    }
    let silent = call.silent;
    let mut work = Work {
        room,
        whole,
        version: call.version,
        transactional_id: call.transactional_id.take(),
        failed: false,
    };
    let mut responses = Vec::with_capacity(call.topics.len());
    for topic in call.topics.drain(..) {
        match work.topic(step, topic) {
            Some(response) => responses.push(response),
            None => return Handled::Close,
        }
    }
    match (silent, work.failed) {
        (true, true) => Handled::Close,
        (true, false) => Handled::Nothing,
        (false, _) => ProduceResponse { responses, ..Default::default() }.into(),
    }
}

fn batches(call: &ProduceCall) -> impl Iterator<Item = &CheckedBatch> {
    call.topics.iter().flat_map(|topic| &topic.partitions).filter_map(|(_, checked)| checked.as_ref().ok())
}

fn worst_case_bytes(call: &ProduceCall) -> u64 {
    batches(call).map(|checked| checked.batch.bytes().len() as u64 + EVENT_BYTES).sum()
}

/// A refusal that hits every partition: transactional batches without a transactional id (53, as Kafka says), or of
/// more than one producer (49).
fn refusal_of_all(call: &ProduceCall) -> Option<(ErrorCode, &'static str)> {
    let mut stamps = batches(call).filter_map(|checked| checked.stamp).filter(|stamp| stamp.transactional);
    let first = stamps.next()?;
    if call.transactional_id.is_none() {
        let code = ErrorCode::TransactionalIdAuthorizationFailed;
        return Some((code, "a transactional batch in a request without transactional id"));
    }
    let mixed = stamps.any(|stamp| stamp.producer != first.producer);
    mixed.then_some((ErrorCode::InvalidProducerIdMapping, "transactional batches of several producers"))
}

/// A Produce request in progress.
struct Work {
    room: Room,
    whole: Option<(ErrorCode, &'static str)>,
    version: i16,
    transactional_id: Option<TransactionalId>,
    failed: bool,
}

impl Work {
    /// `None` if the connection is to be closed.
    fn topic(&mut self, step: &mut Step<'_>, call: ProduceTopicCall) -> Option<ProduceTopicResponse> {
        let found = self.find(step, &call);
        let (name, topic_id) = (call.name, call.id);
        let mut partitions = Vec::with_capacity(call.partitions.len());
        for (index, checked) in call.partitions {
            let target = found.as_ref().map_err(|refused| *refused).and_then(|topic| {
                let unknown = (ErrorCode::UnknownTopicOrPartition, "the topic has no such partition");
                topic.partition(index).map(|handle| Target { topic, handle }).ok_or(unknown)
            });
            let log_start = target.as_ref().ok().and_then(|target| {
                step.state().eos.partition(target.handle).map(|partition| partition.log_start())
            });
            let fate = match (self.whole, target) {
                (Some((code, message)), _) => PartitionRefusal::of(code, message),
                (None, Err((code, message))) => {
                    let topic = if name.is_empty() { topic_id.to_string() } else { name.to_string() };
                    step.note(format!("refused a batch for {topic}-{index}: {message}"));
                    PartitionRefusal::of(code, message)
                }
                (None, Ok(target)) => self.batch(step, &target, checked),
            };
            partitions.push(self.response(index, fate, log_start)?);
        }
        Some(ProduceTopicResponse { name, topic_id, partitions })
    }

    fn find(
        &self,
        step: &Step<'_>,
        call: &ProduceTopicCall,
    ) -> Result<Arc<Topic>, (ErrorCode, &'static str)> {
        let catalog = &step.state().catalog;
        if self.version >= 13 {
            let unknown = (ErrorCode::UnknownTopicId, "no topic has this id");
            return catalog.topic_by_id(call.id).cloned().ok_or(unknown);
        }
        if topic_name::is_internal(&call.name) {
            return Err((ErrorCode::InvalidTopicException, "clients do not write internal topics"));
        }
        let unknown = (ErrorCode::UnknownTopicOrPartition, "there is no such topic");
        catalog.topic(&call.name).cloned().ok_or(unknown)
    }

    fn batch(
        &self,
        step: &mut Step<'_>,
        target: &Target<'_>,
        checked: Result<CheckedBatch, BatchFault>,
    ) -> Fate {
        let checked = match checked {
            Ok(checked) => checked,
            Err(fault) => {
                step.note(format!("refused a batch for {}: {}", target.topic.name(), fault.message));
                return PartitionRefusal::of(fault.code, fault.message);
            }
        };
        let protocol = if self.version >= 12 { Protocol::Version2 } else { Protocol::Classic };
        let connection = step.connection();
        let scope = ProduceScope { transactional_id: self.transactional_id.as_ref(), protocol, connection };
        if mutated(Mutation::LimitsBeforeRetries)
            && let Some(refusal) = definite_refusal(step, target, &checked)
        {
            return Fate::Refused(refusal);
        }
        match &checked.stamp {
            None => self.append(step, target, &scope, &checked),
            Some(stamp) => match step.judge(&scope, target.handle, stamp) {
                Judgement::Append => self.append(step, target, &scope, &checked),
                Judgement::Duplicate { first_offset, appended_at } => {
                    Fate::Duplicate { base_offset: first_offset, appended_ms: appended_at.as_ms() }
                }
                Judgement::Refuse(refusal) => self.refused(step, target, &scope, &refusal),
            },
        }
    }

    /// A batch that would be appended: definite refusals, room, membership; then it is.
    fn append(
        &self,
        step: &mut Step<'_>,
        target: &Target<'_>,
        scope: &ProduceScope<'_>,
        checked: &CheckedBatch,
    ) -> Fate {
        if let Some(refusal) = definite_refusal(step, target, checked) {
            return Fate::Refused(refusal);
        }
        if self.room != Room::Enough {
            if let Some(stamp) = &checked.stamp {
                step.refused_for_room(target.handle, stamp);
            }
            return PartitionRefusal::of(ErrorCode::KafkaStorageError, "no room on the disk");
        }
        let now = step.context.now;
        let admission = match &checked.stamp {
            None => None,
            Some(stamp) => match step.state().eos.admit(scope, target.handle, stamp, now) {
                Ok(admission) => Some(admission),
                Err(refusal) => return self.refused(step, target, scope, &refusal),
            },
        };
        if let Some(extension) = admission.as_ref().and_then(|admission| admission.extension.clone()) {
            step.apply(extension.into());
        }
        let stamped = checked.stamp.as_ref().zip(admission.as_ref());
        let event = step.state().eos.append_event(target.handle, checked.count, stamped, now);
        let base_offset = event.base_offset;
        step.apply_batch(event.into(), payload(target.handle, base_offset, checked));
        Fate::Appended { base_offset }
    }

    fn refused(
        &self,
        step: &mut Step<'_>,
        target: &Target<'_>,
        scope: &ProduceScope<'_>,
        refusal: &Refusal,
    ) -> Fate {
        if let Refusal::OtherPayload { .. } = refusal {
            step.note(format!("a client reused its sequence numbers on {}: {refusal}", target.topic.name()));
        }
        step.note_refused(scope, refusal);
        match answer(refusal, At { api: ApiKey::Produce, version: self.version }) {
            Answered::Code(code) => PartitionRefusal::of(code, refusal.to_string()),
            Answered::Close => Fate::Close,
        }
    }

    /// `None` if the connection is to be closed.
    fn response(
        &mut self,
        index: PartitionIndex,
        fate: Fate,
        log_start: Option<Offset>,
    ) -> Option<ProducePartitionResponse> {
        let log_start_offset = RawOffset::from(log_start);
        let stored = |base_offset: Offset, log_append_time_ms| ProducePartitionResponse {
            index,
            base_offset: base_offset.into(),
            log_append_time_ms,
            log_start_offset,
            ..Default::default()
        };
        match fate {
            Fate::Appended { base_offset } => Some(stored(base_offset, -1)),
            Fate::Duplicate { base_offset, appended_ms } => Some(stored(base_offset, appended_ms)),
            Fate::Refused(refusal) => {
                self.failed = true;
                let log_start_offset =
                    if names_log_start(refusal.code) { log_start_offset } else { RawOffset::NONE };
                let error_message = refusal.message.as_deref().map(message);
                let record_errors = refusal.records;
                let failed = failed(index, refusal.code);
                Some(ProducePartitionResponse { log_start_offset, error_message, record_errors, ..failed })
            }
            Fate::Close => None,
        }
    }
}

/// Where a batch goes.
struct Target<'a> {
    topic: &'a Topic,
    handle: PartitionHandle,
}

fn failed(index: PartitionIndex, code: ErrorCode) -> ProducePartitionResponse {
    ProducePartitionResponse { index, error_code: WireCode::from(code), ..Default::default() }
}

/// Refusals after which a client gives its batch up: only for a batch that is not stored already.
fn definite_refusal(
    step: &Step<'_>,
    target: &Target<'_>,
    checked: &CheckedBatch,
) -> Option<PartitionRefusal> {
    let (limits, own) = (step.limits, target.topic.limits());
    let bytes = checked.batch.bytes().len();
    let max = own.max_message_bytes.unwrap_or(limits.message_max_bytes);
    let segment = own.segment_bytes.unwrap_or(limits.segment_bytes);
    let refuse = |code, message| Some(PartitionRefusal { code, message: Some(message), records: Vec::new() });
    if bytes > max {
        let message = format!("a batch of {bytes} bytes, max.message.bytes is {max}");
        return refuse(ErrorCode::MessageTooLarge, message);
    }
    if bytes > segment {
        let message = format!("a batch of {bytes} bytes, segment.bytes is {segment}");
        return refuse(ErrorCode::RecordListTooLarge, message);
    }
    if own.compacted.unwrap_or(limits.compacted) { keyless(&checked.batch) } else { None }
}

/// Records at fault that one answer names: an answer is not to be larger than its request.
const RECORD_ERRORS_MAX: usize = 100;

/// Records without key, which a compacted topic cannot take; `None` for a compressed batch.
fn keyless(batch: &Batch) -> Option<PartitionRefusal> {
    let without_key = |(index, record): (i32, Result<semel_wire::batch::Record, BatchError>)| {
        let text = match record {
            Ok(record) if record.key.is_some() => return None,
            Ok(_) => "a compacted topic takes no record without key".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(ProduceRecordError { batch_index: index, message: Some(Text::from(&*text)) })
    };
    let records: Vec<_> =
        (0..).zip(batch.records().ok()?).filter_map(without_key).take(RECORD_ERRORS_MAX).collect();
    let message = Some("one or more records have been rejected".to_owned());
    (!records.is_empty()).then_some(PartitionRefusal { code: ErrorCode::InvalidRecord, message, records })
}

fn payload(partition: PartitionHandle, base_offset: Offset, checked: &CheckedBatch) -> Payload {
    Payload {
        partition,
        base_offset,
        count: checked.count,
        max_timestamp: checked.batch.max_timestamp().map_or(-1, WallTime::as_ms),
        bytes: checked.batch.bytes().clone(),
    }
}
