//! Shrinking, dropping and reaping: bounded, never while a transaction is open, nothing forgotten silently.

use semel_eos::Judgement;
use semel_events::Event;
use semel_types::{DurationMs, Now, ProducerId};

use crate::shard::{Shard, batch, code, id, now};

fn counts(shard: &Shard) -> (u64, u64) {
    (shard.state.producers().entries(), shard.state.producers().stubs())
}

#[test]
fn an_entry_shrinks_after_the_expiration_by_a_round_at_most_and_the_wake_up_says_when() {
    for (expiration, round) in [(86_400_000, 600_000), (1000, 10), (50, 1)] {
        let mut shard = Shard::new(1);
        shard.settings.producer_id_expiration = DurationMs::from_ms(expiration);
        shard.produce(0, batch(id(0), 0, 0, 1));
        let early = shard.state.producers_due(&shard.settings, now(shard.now + expiration - 1));
        assert_eq!(early.event, None, "not before the expiration");
        let wake_at = early.wake_at.expect("something will be due");
        let late_by = wake_at.as_ms() - shard.now - expiration;
        assert!((0..round).contains(&late_by), "{late_by} ms late");
        let early = shard.state.producers_due(&shard.settings, now(wake_at.as_ms() - 1));
        assert_eq!((early.event, early.wake_at), (None, Some(wake_at)));
        let due = shard.state.producers_due(&shard.settings, wake_at);
        assert!(matches!(due.event, Some(Event::ProducersShrunk(_))));
        assert_eq!(due.wake_at, Some(wake_at));
        shard.now = wake_at.as_ms();
        shard.expire();
        assert_eq!(counts(&shard), (0, 1));
        assert_eq!(shard.state.producers_due(&shard.settings, now(shard.now + 1)).wake_at, None);
    }
}

#[test]
fn entries_of_a_page_shrink_together() {
    let mut shard = Shard::new(1);
    for producer in 0..64 {
        shard.produce(0, batch(id(producer), 0, 0, 1));
        shard.now += 1000;
    }
    let mut events = 0;
    while let Some(wake_at) = shard.state.producers_due(&shard.settings, now(shard.now)).wake_at {
        shard.now = wake_at.as_ms();
        if let Some(event) = shard.state.producers_due(&shard.settings, now(shard.now)).event {
            shard.apply(event);
            events += 1;
        }
    }
    assert_eq!((counts(&shard), events), ((0, 64), 1));
}

#[test]
fn one_event_shrinks_a_bounded_range() {
    let mut shard = Shard::new(40);
    shard.check = false;
    for producer in 0..1000 {
        for partition in 0..4 {
            shard.produce(partition, batch(id(producer), 0, 0, 1));
        }
    }
    shard.wait_for_expiry();
    let mut events = 0;
    while let Some(event) = shard.state.producers_due(&shard.settings, now(shard.now)).event {
        let before = counts(&shard).0;
        shard.apply(event);
        assert!(before - counts(&shard).0 <= 1024 + 64 * 4);
        events += 1;
    }
    assert_eq!(counts(&shard), (0, 4000));
    assert!((4..=6).contains(&events), "{events} events");
    shard.state.check().expect("sound");
}

#[test]
fn active_producers_cost_one_look_per_page_and_expiration_period() {
    let mut shard = Shard::new(1);
    shard.check = false;
    let expiration = shard.settings.producer_id_expiration.as_ms();
    let mut events = 0;
    for round in 0..30 {
        for producer in 0..256 {
            shard.produce(0, batch(id(producer), 0, round, 1));
        }
        while let Some(event) = shard.state.producers_due(&shard.settings, now(shard.now)).event {
            shard.apply(event);
            events += 1;
        }
        shard.now += expiration / 10;
    }
    assert_eq!(counts(&shard), (256, 0));
    assert!((2..=12).contains(&events), "{events} events in three periods for four pages");
}

#[test]
fn a_producer_of_many_partitions_shrinks_only_where_it_is_idle() {
    let mut shard = Shard::new(300);
    shard.check = false;
    for partition in 0..300 {
        shard.produce(partition, batch(id(0), 0, 0, 2));
    }
    shard.wait_for_expiry();
    for partition in (0..300).step_by(3) {
        shard.produce(partition, batch(id(0), 0, 2, 1));
    }
    shard.expire();
    assert_eq!(counts(&shard), (100, 200));
    for partition in 0..300 {
        let is_entry = partition % 3 == 0;
        assert_eq!(code(&shard.produce(partition, batch(id(0), 0, 0, 2))), if is_entry { 0 } else { 46 });
        assert_eq!(
            shard.produce(partition, batch(id(0), 0, if is_entry { 3 } else { 2 }, 1)),
            Judgement::Append
        );
    }
    shard.state.check().expect("sound");
    assert_eq!(counts(&shard), (300, 0));
}

#[test]
fn stubs_above_the_bound_go_oldest_first_and_their_partitions_say_so() {
    let mut shard = Shard::new(3);
    shard.settings.producer_stubs_max = 100;
    for producer in 0..200 {
        shard.produce((producer % 2) as u32, batch(id(producer), 0, 0, 1));
        shard.now += 3_600_000;
    }
    shard.wait_for_expiry();
    shard.expire();
    let (entries, stubs) = counts(&shard);
    assert_eq!(entries, 0);
    assert!((96..=100).contains(&stubs), "{stubs} stubs");
    let dropped = 200 - stubs as i64;
    for producer in 0..200 {
        let partition = (producer % 2) as u32;
        let expected = if producer < dropped { 59 } else { 45 };
        assert_eq!(code(&shard.produce(partition, batch(id(producer), 0, 5, 1))), expected, "{producer}");
        assert_eq!(code(&shard.produce(2, batch(id(producer), 0, 5, 1))), 45, "nothing was dropped there");
    }
    assert_eq!(code(&shard.produce(0, batch(id(0), 1, 0, 1))), 0);
}

#[test]
fn stubs_and_entries_go_with_their_topic() {
    let mut shard = Shard::new(2);
    shard.create_topic(10, 1, ProducerId::new(0));
    for producer in 0..200 {
        shard.produce(0, batch(id(producer), 0, 0, 1));
        shard.produce(10, batch(id(producer), 0, 0, 1));
    }
    for producer in 200..300 {
        shard.produce(0, batch(id(producer), 0, 0, 1));
    }
    shard.wait_for_expiry();
    shard.expire();
    for producer in 0..50 {
        shard.produce(0, batch(id(producer), 0, 1, 1));
    }
    assert_eq!(counts(&shard), (50, 450));
    shard.delete_topic(0, 2);
    shard.expire();
    assert_eq!(counts(&shard), (0, 200));
    shard.delete_topic(10, 1);
    shard.expire();
    assert_eq!(counts(&shard), (0, 0));
    assert_eq!(shard.state.producers_due(&shard.settings, Now::from_ms(i64::MAX / 2)).event, None);
}

#[test]
fn topics_deleted_while_a_pass_is_under_way_are_reaped_as_well() {
    let mut shard = Shard::new(2);
    shard.check = false;
    shard.create_topic(10, 1, ProducerId::new(0));
    for producer in 0..1000 {
        for partition in [0, 1, 10] {
            shard.produce(partition, batch(id(producer), 0, 0, 1));
        }
    }
    shard.delete_topic(10, 1);
    let event = shard.state.producers_due(&shard.settings, now(shard.now)).event.expect("a pass is due");
    shard.apply(event);
    shard.delete_topic(0, 2);
    shard.expire();
    assert_eq!(counts(&shard), (0, 0));
    shard.state.check().expect("sound");
}

#[test]
fn a_silence_does_not_forget_that_the_sequence_has_wrapped() {
    let last = i64::from(i32::MAX);
    for past_the_wrap in [0, 5] {
        let mut shard = Shard::new(1);
        shard.produce(0, batch(id(0), 0, 0, i32::MAX as u32 - 9));
        shard.produce(0, batch(id(0), 0, last - 9, 10 + past_the_wrap));
        shard.wait_for_expiry();
        shard.expire();
        let next = i64::from(past_the_wrap);
        assert_eq!(shard.produce(0, batch(id(0), 0, next, 1)), Judgement::Append);
        assert_eq!(code(&shard.produce(0, batch(id(0), 0, last - 2, 1))), 46);
    }
}

#[test]
fn deleting_data_or_time_alone_never_drops_what_is_known() {
    let mut shard = Shard::new(1);
    shard.produce(0, batch(id(0), 2, 0, 1));
    for _ in 0..5 {
        shard.now += 10 * shard.settings.producer_id_expiration.as_ms();
        shard.expire();
    }
    assert_eq!(code(&shard.produce(0, batch(id(0), 1, 0, 1))), 47);
    assert_eq!(code(&shard.produce(0, batch(id(0), 2, 0, 1))), 46);
}

#[test]
fn made_up_ids_are_bounded_and_the_one_not_written_for_longest_goes_first() {
    let mut shard = Shard::new(1);
    shard.check = false;
    let made_up = |number: i64| ProducerId::new(1 << 50 | number << 20);
    for number in 0..65_536 {
        shard.produce(0, batch(made_up(number), 0, 0, 1));
    }
    shard.produce(0, batch(made_up(0), 0, 1, 1));
    shard.produce(0, batch(made_up(70_000), 0, 0, 1));
    assert_eq!(code(&shard.produce(0, batch(made_up(0), 0, 1, 1))), 0, "written lately, still a duplicate");
    assert_eq!(shard.next_offset(0), 65_538);
    assert_eq!(code(&shard.produce(0, batch(made_up(1), 0, 1, 1))), 59, "gone");
    shard.state.check().expect("sound");
}
