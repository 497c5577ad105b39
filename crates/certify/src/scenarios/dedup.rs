//! Area `dedup`: a record is stored once, whatever the network and the client do.

use std::{thread, time::Duration};

use semel_wire::ApiKey;

use crate::{
    Answer, Failure,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::produce::{batch_of, request_of},
    codec::{Codec, packed},
    relay::Action,
    scenario::{Area, Basis, Kept, Needs},
    session::{Place, Produced},
    stricter::SHORT_EXPIRY,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] =
    &[&B01, &B02, &B03, &B04, &B05, &B08A, &B08B, &B09, &B10, &B12, &B13, &B14, &super::told::B100, &D1];

const B01: Scenario = Scenario {
    id: "B01",
    title: "a retry after a lost acknowledgement",
    promise: "A client that sends again what it got no answer for neither loses nor doubles a record.",
    source: "redpanda-data/redpanda#3039, #3040",
    basis: &[Basis::Reference, Basis::Thread],
    ..Scenario::kafka(Area::Dedup, b01)
};

fn b01(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let relay = probe.relay()?;
    let mut a = probe.actor_behind("A", &relay)?;
    let me = a.init_plain()?;
    relay.on(ApiKey::Produce, 1, Action::SwallowAnswer);
    a.produce(&t, &me, 0, &["a", "b", "c"]).is_cut()?;
    let mut again = probe.actor("A again")?;
    again.produce(&t, &me, 0, &["a", "b", "c"]).is_stored_at(0)?;
    again.produce(&t, &me, 3, &["d"]).is_stored_at(3)?;
    again.stores(&t, &["a", "b", "c", "d"])?;
    probe.same("the high watermark", again.ends(&t)?.high_watermark, 4)
}

const B02: Scenario = Scenario {
    id: "B02",
    title: "the last five batches are recognised in any order",
    promise: "A producer with five requests in flight may lose all five answers and send all five again.",
    source: "apache/kafka PR #3743 (KAFKA-5494); redpanda-data/redpanda#3040",
    ..Scenario::kafka(Area::Dedup, b02)
};

fn b02(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let values = ["0", "1", "2", "3", "4"];
    for (sequence, value) in (0..).zip(values) {
        a.send_produce(&t, &me, sequence, &[value])?;
    }
    for offset in 0..5 {
        a.next_produced(&format!("the batch with seq {offset}")).is_stored_at(offset)?;
    }
    let mut b = probe.actor("A again")?;
    for sequence in (0..5).chain((0..5).rev()).chain([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]) {
        let value = values[usize::try_from(sequence).expect("0 to 4")];
        b.produce(&t, &me, sequence, &[value]).is_stored_at(i64::from(sequence))?;
    }
    b.stores(&t, &values)?;
    // On two connections at once: a broker may close the one that its client has left.
    thread::scope(|scope| {
        let other = scope.spawn(|| send_all_again(probe, &t, &me, &values));
        send_all_again(probe, &t, &me, &values)?;
        other.join().expect("nobody breaks off")
    })?;
    is_there_or_cut(a.produce(&t, &me, 0, &["0"]), 0)?;
    b.stores(&t, &values)
}

/// Every value twice over one connection, as far as it is not closed.
fn send_all_again(probe: &Probe, t: &Place, me: &Producer, values: &[&str]) -> Kept {
    let mut a = probe.actor("A at once")?;
    for (sequence, value) in (0..).zip(values) {
        for _ in 0..2 {
            if !is_there_or_cut(a.produce(t, me, sequence, &[value]), sequence.into())? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A retry is answered with its offset, or its connection is closed; nothing else. False for the latter.
fn is_there_or_cut(again: Answer<Produced>, offset: i64) -> Kept<bool> {
    if again.code().is_some() {
        again.is_stored_at(offset)?;
        return Ok(true);
    }
    again.is_cut()?;
    Ok(false)
}

const B03: Scenario = Scenario {
    id: "B03",
    title: "a retry older than the window",
    promise: "A very late copy of a batch is neither appended again nor confirmed with another record's offset.",
    source: "twmb/franz-go PR #846; confluentinc/librdkafka PR #4438",
    ..Scenario::kafka(Area::Dedup, b03)
};

fn b03(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let values = ["0", "1", "2", "3", "4", "5"];
    for (sequence, value) in (0..).zip(values) {
        a.produce(&t, &me, sequence, &[value]).is_stored_at(i64::from(sequence))?;
    }
    a.produce(&t, &me, 0, &["0"]).is_any(&[45, 46])?;
    a.produce(&t, &me, 6, &["6"]).is_stored_at(6)?;
    a.stores(&t, &["0", "1", "2", "3", "4", "5", "6"])
}

const B04: Scenario = Scenario {
    id: "B04",
    title: "a gap is refused, and a batch counts its records, packed or not",
    promise: "A batch that overtook another one waits for it; nothing is lost between them.",
    source: "tulios/kafkajs#598; redpanda-data/redpanda#3826; IBM/sarama#1430; founding rule 4",
    ..Scenario::kafka(Area::Dedup, b04)
};

fn b04(probe: &mut Probe) -> Kept {
    for codec in [None].into_iter().chain(Codec::ALL.map(Some)) {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        let me = a.init_plain()?;
        let mut send = |sequence: i32, values: &[&str]| {
            let batch = batch_of(&me, sequence, values);
            let batch = codec.map_or_else(|| batch.clone(), |codec| packed(&batch, codec));
            a.produce_batch(&format!("Produce {values:?} seq {sequence} packed {codec:?}"), &t, None, batch)
        };
        send(0, &["a", "b"]).is_stored_at(0)?;
        send(3, &["d"]).is(45)?;
        send(2, &["c"]).is_stored_at(2)?;
        send(3, &["d"]).is_stored_at(3)?;
        send(0, &["a", "b"]).is_stored_at(0)?;
        // The records stay packed here; where each batch stands and how many it has is in its head.
        let stored = a.dump(&t)?;
        let stored: Vec<_> =
            stored.iter().map(|batch| (batch.base_offset().get(), batch.record_count())).collect();
        probe.same("first offset and records of each batch", stored, vec![(0, 2), (2, 1), (3, 1)])?;
    }
    Ok(())
}

const B05: Scenario = Scenario {
    id: "B05",
    title: "an overlapping or resized batch is not a duplicate",
    promise: "A batch that shares only some sequence numbers with an older one is not confirmed as stored.",
    source: "redpanda-data/redpanda PR #5026",
    ..Scenario::kafka(Area::Dedup, b05)
};

fn b05(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let first = ["a", "b", "c", "d", "e"];
    a.produce(&t, &me, 0, &first).is_stored_at(0)?;
    // Semel answers 46 where every record is known to be stored; 45 and 46 both say "not confirmed here".
    a.produce(&t, &me, 0, &["v", "w", "x"]).is_any(&[45, 46])?;
    a.produce(&t, &me, 2, &["v", "w", "x"]).is_any(&[45, 46])?;
    a.produce(&t, &me, 3, &["v", "w", "x", "y", "z"]).is(45)?;
    a.produce(&t, &me, 0, &["u", "v", "w", "x", "y", "z"]).is(45)?;
    a.stores(&t, &first)?;
    a.produce(&t, &me, 5, &["f"]).is_stored_at(5)
}

const B08A: Scenario = Scenario {
    id: "B08a",
    title: "a producer that was idle past its expiry goes on",
    promise: "A producer that had nothing to send for a day is not dead afterwards.",
    source: "redpanda-data/redpanda#22670, PR #22687; KIP-360; KIP-854",
    basis: &[Basis::Reference, Basis::Thread],
    needs: Needs::Settings(SHORT_EXPIRY),
    left_out: "librdkafka itself: the suite sends its requests, the clients in clients/ are libraries",
    ..Scenario::kafka(Area::Dedup, b08a)
};

fn b08a(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 0, &["0", "1", "2", "3", "4"]).is_stored_at(0)?;
    // What is tried is the passing of time: there is nothing to wait for.
    thread::sleep(Duration::from_millis(2500));
    a.produce(&t, &me, 5, &["5", "6"]).is_stored_at(5)?;
    a.stores(&t, &["0", "1", "2", "3", "4", "5", "6"])
}

const B08B: Scenario = Scenario {
    id: "B08b",
    title: "a producer goes on after its records were deleted",
    promise: "Cleaning up a topic does not stop those who write to it.",
    source: "apache/kafka PR #7388 (KAFKA-7190); KIP-360",
    basis: &[Basis::Reference, Basis::Thread],
    versions: "classic, DeleteRecords 1",
    ..Scenario::kafka(Area::Dedup, b08b)
};

fn b08b(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::DeleteRecords, 1)?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 0, &["0", "1", "2", "3", "4"]).is_stored_at(0)?;
    probe.same("the new start of the log", a.delete_records(&t, 5).is(0)?, 5)?;
    a.produce(&t, &me, 5, &["5", "6"]).is_stored_at(5)
}

const B09: Scenario = Scenario {
    id: "B09",
    title: "an idempotent client bumps its own epoch",
    promise: "A client that starts again under the next epoch goes on, and nothing of its older epoch comes through.",
    source: "redpanda-data/redpanda PR #22687; KIP-360; apache/kafka PR #9832 (KAFKA-12152)",
    ..Scenario::kafka(Area::Dedup, b09)
};

fn b09(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 0, &["a", "b"]).is_stored_at(0)?;
    a.produce(&t, &me.at_epoch(1), 0, &["c"]).is_stored_at(2)?;
    a.produce(&t, &me, 2, &["x"]).is(47)?;
    a.produce(&t, &me.at_epoch(2), 4, &["y"]).is(45)?;
    a.produce(&t, &me.at_epoch(2), 0, &["d"]).is_stored_at(3)?;
    a.stores(&t, &["a", "b", "c", "d"])
}

const B10: Scenario = Scenario {
    id: "B10",
    title: "a retry of a batch that is deleted by now",
    promise: "A retry is not stored again because its first copy was cleaned up meanwhile.",
    source: "redpanda-data/redpanda#5355, PR #5356; KAFKA-14034",
    basis: &[Basis::Thread],
    versions: "classic, DeleteRecords 1",
    left_out: "the form in which retention deletes: Semel deletes nothing by age or size yet",
    ..Scenario::kafka(Area::Dedup, b10)
};

fn b10(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::DeleteRecords, 1)?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    for sequence in 0..5 {
        a.produce(&t, &me, sequence, &["v"]).is_stored_at(i64::from(sequence))?;
    }
    a.delete_records(&t, 4).is(0)?;
    let offset = a.produce(&t, &me, 2, &["v"]).is(0)?.base_offset.get();
    probe.holds([2, -1].contains(&offset), &format!("offset {offset}"), "2 or -1")?;
    probe.same("the high watermark", a.ends(&t)?.high_watermark, 5)
}

const B12: Scenario = Scenario {
    id: "B12",
    title: "idempotent batches with acks 1 and acks 0",
    promise: "A client with weaker acknowledgements does not double records, and nobody answers what wants no answer.",
    source: "redpanda-data/redpanda#2605; confluentinc/librdkafka#2797",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Dedup, b12)
};

fn b12(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    for sequence in [0, 0, 1] {
        let request = request_of(None, 1, &[(&t, batch_of(&me, sequence, &["one"]))]);
        let answer = a.ask(&format!("Produce with acks 1, seq {sequence}"), &request, 9, |response| {
            let mut partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
            partitions.next().map_or(semel_wire::WireCode(-1), |partition| partition.error_code)
        });
        answer.is(0)?;
    }
    a.stores(&t, &["one", "one"])?;
    let quiet = request_of(None, 0, &[(&t, batch_of(&me, 2, &["none"]))]);
    let bytes = semel_wire::frame::request(&quiet, 9, 70, Some("certify"))?;
    let mut silent = probe.actor("silent")?;
    silent.session.client.send_bytes(&bytes)?;
    silent.session.client.send_bytes(&bytes)?;
    // An answer of its own on the same connection comes first and alone: what wants none got none.
    silent.produce(&t, &me, 3, &["asked"]).is_stored_at(3)?;
    silent.stores(&t, &["one", "one", "none", "asked"])
}

const B13: Scenario = Scenario {
    id: "B13",
    title: "a sequence error on one partition leaves its neighbours alone",
    promise: "One bad partition of a request does not cost the good ones their records or their sequence.",
    source: "confluentinc/librdkafka#4953",
    basis: &[Basis::Reference, Basis::Protocol],
    ..Scenario::kafka(Area::Dedup, b13)
};

fn b13(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let missing = crate::session::Place::of(&format!("{}-missing", t[0].topic), 0);
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t[1], &me, 0, &["x"]).is_stored_at(0)?;
    let mut both = a.produce_many(&me, &[(&t[0], 0, &["a"]), (&t[1], 5, &["gap"])]).into_iter();
    both.next().expect("one answer per batch").is_stored_at(0)?;
    both.next().expect("one answer per batch").is(45)?;
    let mut both = a.produce_many(&me, &[(&t[0], 1, &["b"]), (&missing, 0, &["nowhere"])]).into_iter();
    both.next().expect("one answer per batch").is_stored_at(1)?;
    both.next().expect("one answer per batch").is(3)?;
    a.produce(&t[0], &me, 2, &["c"]).is_stored_at(2)?;
    a.produce(&t[1], &me, 1, &["y"]).is_stored_at(1)?;
    a.stores(&t[0], &["a", "b", "c"])?;
    a.stores(&t[1], &["x", "y"])
}

const B14: Scenario = Scenario {
    id: "B14",
    title: "the same sequence in the next transaction after an abort, version 2",
    promise: "A record of a new transaction is not confirmed in the place of one that was aborted.",
    source: "redpanda-data/redpanda PR #5026; KIP-890",
    basis: &[Basis::Thread],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Dedup, b14)
};

fn b14(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    let me = a.init(&probe.id("x"))?;
    a.produce(&t, &me, 0, &["A"]).is_stored_at(0)?;
    let me = a.end(&me, Abort).is(0)?;
    a.produce_when_free(&t, &me, 0, &["B"]).is_stored_at(2)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["B"])
}

const D1: Scenario = Scenario {
    id: "D1",
    title: "the largest sequence number and the one after it",
    promise: "A producer that lives long enough to run through all sequence numbers goes on at zero.",
    source: "KIP-98; kafkajs and kfake wrap otherwise",
    left_out: "brokers that take no producer in the middle of a sequence: two thousand million records would be needed",
    ..Scenario::kafka(Area::Dedup, d1)
};

fn d1(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let bumped = me.at_epoch(1);
    // A state that stands just before the end is reached only where a broker takes any first sequence: a log that
    // has had records, from a producer that it does not know.
    a.produce_plain(&t, &["before"]).is_stored_at(0)?;
    let first = a.produce(&t, &bumped, i32::MAX - 1, &["a"]);
    if first.code() == Some(45) || first.code() == Some(59) {
        let reason = "the broker takes no producer that starts in the middle of a sequence";
        return Err(Failure::NotRun(reason.into()));
    }
    first.is_stored_at(1)?;
    a.produce(&t, &bumped, i32::MAX, &["b", "c"]).is_stored_at(2)?;
    a.produce(&t, &bumped, i32::MAX, &["b", "c"]).is_stored_at(2)?;
    a.produce(&t, &bumped, 1, &["d"]).is_stored_at(4)?;
    a.stores(&t, &["before", "a", "b", "c", "d"])
}
