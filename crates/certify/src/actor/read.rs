//! Fetch and ListOffsets: what stands in the log and what a reader is given.
//!
//! Words that say "in the end" wait for markers, which a broker may write after it has answered EndTxn; all others look
//! once.

use semel_types::Offset;
use semel_wire::{RawOffset, api::fetch::FetchPartitionResponse, batch::Batch};

use super::{Actor, said, wait_for};
use crate::{
    Failure,
    scenario::Kept,
    session::{Isolation, Place},
};

/// Where a partition ends: for everybody, and for readers of committed records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// `LO(0)`, the high watermark.
    pub high_watermark: i64,
    /// `LO(1)`, the last stable offset.
    pub last_stable: i64,
}

impl Actor {
    /// `LO(0)` and `LO(1)`.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn ends(&mut self, place: &Place) -> Kept<Ends> {
        let high_watermark = self.session.end_offset(place, Isolation::Uncommitted)?.get();
        let last_stable = self.session.end_offset(place, Isolation::Committed)?.get();
        self.trace.add(
            &format!("{}: ListOffsets latest of {}", self.name, said(&[place])),
            format!("{high_watermark}, committed {last_stable}"),
        );
        Ok(Ends { high_watermark, last_stable })
    }

    /// In the end no transaction is open: `LO(1)` = `LO(0)`.
    ///
    /// # Errors
    /// It stands still.
    pub fn settles(&mut self, place: &Place) -> Kept<Ends> {
        let ends = wait_for(|| self.ends(place), |ends| ends.high_watermark == ends.last_stable)?;
        if ends.high_watermark == ends.last_stable {
            return Ok(ends);
        }
        Err(Failure::broken(
            format!("{}: ListOffsets of {}", self.name, said(&[place])),
            format!("last stable offset {}, high watermark {}", ends.last_stable, ends.high_watermark),
            "the same: nothing is open any more",
        ))
    }

    /// Nothing is open in the end, and then readers of committed records are given exactly these values, in order.
    ///
    /// # Errors
    /// They are given others.
    pub fn reads(&mut self, place: &Place, due: &[&str]) -> Kept {
        self.settles(place)?;
        self.reads_now(place, Isolation::Committed, due)
    }

    /// A reader is given exactly these values at once.
    ///
    /// # Errors
    /// It is given others.
    pub fn reads_now(&mut self, place: &Place, isolation: Isolation, due: &[&str]) -> Kept {
        let values = self.values(place, isolation)?;
        if values == due {
            return Ok(());
        }
        Err(Failure::broken(
            format!("{}: read {} {isolation:?} from the start", self.name, said(&[place])),
            listed(&values),
            listed(due),
        ))
    }

    /// What a reader is given now, from the start.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn values(&mut self, place: &Place, isolation: Isolation) -> Kept<Vec<String>> {
        let values = self.session.read(place, isolation)?;
        let values: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        self.trace.add(&format!("{}: read {} {isolation:?}", self.name, said(&[place])), listed(&values));
        Ok(values)
    }

    /// `Dump` has exactly these values, markers aside: whatever became of their transactions.
    ///
    /// # Errors
    /// It has others.
    pub fn stores(&mut self, place: &Place, due: &[&str]) -> Kept {
        self.reads_now(place, Isolation::Uncommitted, due)
    }

    /// `Dump`: every batch, markers included.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn dump(&mut self, place: &Place) -> Kept<Vec<Batch>> {
        Ok(self.session.dump(place)?)
    }

    /// One Fetch from an offset, waiting for nothing.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn fetch(
        &mut self,
        place: &Place,
        offset: i64,
        isolation: Isolation,
    ) -> Kept<FetchPartitionResponse> {
        let answer = self.session.fetch(place, Offset::new(offset), isolation)?;
        let bytes = answer.records.as_ref().map_or(0, |records| records.to_bytes().len());
        let RawOffset(stable) = answer.last_stable_offset;
        self.trace.add(
            &format!("{}: Fetch {} from {offset} {isolation:?}", self.name, said(&[place])),
            format!("{}, {bytes} bytes, last stable {stable}", answer.error_code),
        );
        Ok(answer)
    }
}

/// Values for people; a long list by its ends.
fn listed<T: AsRef<str>>(values: &[T]) -> String {
    let names = |part: &[T]| part.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match values.len() {
        0 => "nothing".to_owned(),
        1..=20 => format!("[{}]", names(values)),
        count => format!("[{}, ... {}] ({count} values)", names(&values[..8]), names(&values[count - 4..])),
    }
}
