//! Area `dedup`: a record is stored once, whatever the network and the client do.

use semel_wire::ApiKey;

use crate::{
    Outcome::{Abort, Commit},
    Probe, Scenario,
    relay::Action,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B01, &B02, &B03, &B05, &B09, &B13, &B14];

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
    // A broker may close the connection that its client has left; it may not answer anything else there.
    let late = a.produce(&t, &me, 0, &["0"]);
    if late.code().is_some() {
        late.is_stored_at(0)?
    } else {
        late.is_cut()?
    }
    b.stores(&t, &values)
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
