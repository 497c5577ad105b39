//! Random histories of several lives against a plain model of what was promised.

use std::{io, time::Instant};

use super::*;
use crate::{Room, RoomClass};

/// What one life promised before it ended.
struct Promised {
    /// Survives a power loss.
    durable: u64,
    /// Survives a kill.
    acknowledged: u64,
}

/// One life: opens, does random things, and ends at a random moment.
struct Life<'a> {
    dice: &'a mut Dice,
    author: &'a mut Author,
    said: Said,
    promised: Promised,
    durability: Durability,
    stopped_cleanly: bool,
}

impl Life<'_> {
    fn run(&mut self, options: &Options, was_clean: bool) -> Result<(), OpenError> {
        let opened = open(options, self.author, self.promised.acknowledged, &self.said)?;
        if was_clean {
            assert!(opened.clean, "a clean stop is recognised");
        }
        self.promise(self.author.history.len() as u64, true);
        Ok(self.live(opened)?)
    }

    fn promise(&mut self, sequence: u64, durable: bool) {
        self.promised.acknowledged = self.promised.acknowledged.max(sequence);
        if durable || self.durability == Durability::Sync {
            self.promised.durable = self.promised.durable.max(sequence);
        }
    }

    fn live(&mut self, opened: Opened) -> io::Result<()> {
        let mut rig = Rig::start(opened, self.author)?;
        self.promise(self.author.history.len() as u64, true);
        let steps = self.dice.below(40);
        for _ in 0..steps {
            self.step(&mut rig)?;
        }
        if self.dice.one_in(4) {
            rig.stop()?;
            self.promise(self.author.history.len() as u64, true);
            self.stopped_cleanly = true;
        }
        Ok(())
    }

    fn step(&mut self, rig: &mut Rig) -> io::Result<()> {
        match self.dice.below(17) {
            16 => self.sync_beside(rig)?,
            0..5 => self.submit(rig),
            5..9 => self.drain(rig)?,
            9 => {
                rig.thread.sync()?;
                self.promise(self.said.durable(), true);
            }
            10 => {
                self.drain(rig)?;
                rig.thread.rest()?;
                self.promise(self.said.durable(), true);
            }
            11 | 12 => {
                if rig.log.wants_snapshot() || self.dice.one_in(3) {
                    rig.log.snapshot(Box::new(self.author.node.clone()));
                }
            }
            13 => drop(rig.thread.turn(Instant::now())),
            _ => {
                for _ in 0..self.dice.below(6) {
                    rig.background.step()?;
                }
            }
        }
        Ok(())
    }

    /// A sync that begins now and ends after more was written.
    fn sync_beside(&mut self, rig: &mut Rig) -> io::Result<()> {
        let Some(ticket) = rig.thread.ticket() else { return Ok(()) };
        if self.dice.one_in(2) {
            ticket.file.sync()?;
            self.submit(rig);
            self.drain(rig)?;
        } else {
            self.submit(rig);
            self.drain(rig)?;
            ticket.file.sync()?;
        }
        rig.thread.note_synced(ticket.mark);
        self.promise(ticket.mark.sequence.get(), true);
        Ok(())
    }

    fn submit(&mut self, rig: &mut Rig) {
        for _ in 0..1 + self.dice.below(4) {
            if rig.log.room(40_000, RoomClass::Produce) == Room::Enough {
                rig.log.submit(self.author.decide(self.dice));
            }
        }
    }

    fn drain(&mut self, rig: &mut Rig) -> io::Result<()> {
        rig.drain()?;
        let durable = !matches!(self.durability, Durability::Interval(_));
        self.promise(self.said.durable(), durable);
        Ok(())
    }
}

/// One history of several lives; panics if the log loses, invents, or refuses.
fn history(seed: u64) {
    let mut dice = Dice(seed);
    let disk = SimulatedDisk::new(dice.roll());
    let durability = if dice.one_in(2) { Durability::Sync } else { Durability::Interval(100) };
    if dice.one_in(4) {
        disk.without_direct_writes();
    }
    let mut author = author();
    let mut promised = Promised { durable: 0, acknowledged: 0 };
    let mut clean = false;
    for _ in 0..4 {
        let options = options(&disk, durability);
        if !dice.one_in(8) {
            let longest = if dice.one_in(2) { 20 } else { 120 };
            disk.fail_after(dice.below(longest));
        }
        let said = Said::default();
        let mut life =
            Life { dice: &mut dice, author: &mut author, said, promised, durability, stopped_cleanly: false };
        match life.run(&options, clean) {
            Ok(()) => {}
            Err(OpenError::Io(_) | OpenError::NotWritable { .. }) if disk.has_failed() => {}
            Err(error) => panic!("seed {seed}: refused: {error}"),
        }
        (promised, clean) = (life.promised, life.stopped_cleanly);
        if dice.one_in(3) {
            disk.restart_process();
        } else {
            disk.restore_power();
            promised.acknowledged = promised.durable;
        }
    }
    let options = options(&disk, durability);
    if let Err(error) = open(&options, &mut author, promised.acknowledged, &Said::default()) {
        panic!("seed {seed}: refused: {error}");
    }
}

/// Runs `seeds`, naming the seed of a failure.
fn histories(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| history(seed)) {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            panic!("history of seed {seed}: {}", text.unwrap_or_default());
        }
    }
}

/// To look at one history, or to search further: `SEED=n COUNT=m cargo test histories_from_a_given_seed`.
#[test]
fn histories_from_a_given_seed() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("SEED").unwrap_or(1 << 32);
    histories(seed..seed + number("COUNT").unwrap_or(1));
}

#[test]
fn no_history_loses_invents_or_refuses_part_one() {
    histories(0..10_000);
}

#[test]
fn no_history_loses_invents_or_refuses_part_two() {
    histories(10_000..20_000);
}
