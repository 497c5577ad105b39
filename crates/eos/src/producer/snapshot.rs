//! The snapshot form of the producer table: every number as it was, hints and places included, so that a state read
//! back is equal and decides equally.

use alloc::{sync::Arc, vec::Vec};

use semel_events::{Decode, DecodeError, Encode, Reader, codec::put_unsigned};

use super::{
    Entry, Stub, Table,
    foreign::Foreign,
    page::{Hints, PER_PAGE, Page},
    slot::{Held, Many, OwnedSlot, Slot},
    table::Reap,
};

/// The page of the largest producer id.
const LAST_PAGE: u64 = i64::MAX as u64 / PER_PAGE as u64;

impl Table {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.reap.encode(out);
        self.foreign.encode(out);
        put_unsigned(self.pages.iter().count() as u64, out);
        for (number, page) in self.pages.iter() {
            put_unsigned(number, out);
            page.encode(out);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut table =
            Self { reap: Decode::decode(reader)?, foreign: Foreign::decode(reader)?, ..Self::default() };
        let mut next = 0;
        for _ in 0..reader.length()? {
            let position = reader.position();
            let number = reader.unsigned()?;
            if number < next || number > LAST_PAGE {
                return Err(DecodeError::Number { position });
            }
            next = number + 1;
            let page = Page::decode(reader)?;
            table.add(number, page);
        }
        table.look();
        Ok(table)
    }

    fn add(&mut self, number: u64, page: Page) {
        for at in 0..PER_PAGE {
            let (entries, stubs) = page.counts(at);
            self.entries += entries as u64;
            self.stubs += stubs as u64;
        }
        let (place, summary) = self.pages.entry(number);
        *summary = summary.earlier(page.hints);
        *place = page;
    }
}

impl Encode for Page {
    fn encode(&self, out: &mut Vec<u8>) {
        self.hints.encode(out);
        let used = || (0_u8..).zip(&self.slots).filter(|(_, slot)| **slot != Slot::EMPTY);
        put_unsigned(used().count() as u64, out);
        for (at, slot) in used() {
            out.push(at);
            slot.owned.as_deref().cloned().encode(out);
            self.encode_held(&slot.held, out);
        }
    }
}

impl Page {
    fn encode_held(&self, held: &Held, out: &mut Vec<u8>) {
        match held {
            Held::Nothing => out.push(0),
            Held::One(place) => {
                out.extend_from_slice(&[1, *place]);
                self.singles[usize::from(*place)].encode(out);
            }
            Held::Stub(stub) => {
                out.push(2);
                stub.encode(out);
            }
            Held::Many(many) => {
                out.push(3);
                many.encode(out);
            }
        }
    }
}

impl Decode for Page {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut page = Self { hints: Hints::decode(reader)?, ..Self::default() };
        let mut singles = [const { None }; PER_PAGE];
        let mut next = 0;
        for _ in 0..reader.length()? {
            let at = place(reader, next)?;
            next = at + 1;
            let owned: Option<OwnedSlot> = Decode::decode(reader)?;
            let held = decode_held(reader, &mut singles)?;
            page.slots[at] = Slot { owned: owned.map(Arc::new), held };
        }
        page.singles = singles.iter().map_while(|single| *single).collect();
        if page.singles.len() == singles.iter().flatten().count() {
            Ok(page)
        } else {
            Err(DecodeError::Number { position: reader.position() })
        }
    }
}

/// The place of a slot or an entry in a page, no lower than `least`.
fn place(reader: &mut Reader<'_>, least: usize) -> Result<usize, DecodeError> {
    let position = reader.position();
    let at = usize::from(reader.byte()?);
    if (least..PER_PAGE).contains(&at) { Ok(at) } else { Err(DecodeError::Number { position }) }
}

fn decode_held(
    reader: &mut Reader<'_>,
    singles: &mut [Option<Entry>; PER_PAGE],
) -> Result<Held, DecodeError> {
    match reader.byte()? {
        0 => Ok(Held::Nothing),
        1 => {
            let position = reader.position();
            let at = place(reader, 0)?;
            let entry = Decode::decode(reader)?;
            match singles[at].replace(entry) {
                None => Ok(Held::One(at as u8)),
                Some(_) => Err(DecodeError::Number { position }),
            }
        }
        2 => Stub::decode(reader).map(Held::Stub),
        3 => Many::decode(reader).map(Arc::new).map(Held::Many),
        found => Err(DecodeError::Choice { of: "form of a producer's entries", found }),
    }
}

impl Encode for Many {
    fn encode(&self, out: &mut Vec<u8>) {
        put_unsigned(self.runs().len() as u64, out);
        for run in self.runs() {
            put_unsigned(run.len() as u64, out);
            run.iter().for_each(|entry| entry.encode(out));
        }
        put_unsigned(self.stubs().len() as u64, out);
        self.stubs().iter().for_each(|stub| stub.encode(out));
    }
}

impl Decode for Many {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self::from_runs(Decode::decode(reader)?, Decode::decode(reader)?))
    }
}

impl Encode for OwnedSlot {
    fn encode(&self, out: &mut Vec<u8>) {
        self.owner.encode(out);
        self.epoch.encode(out);
        self.closed.encode(out);
        self.open.encode(out);
    }
}

impl Decode for OwnedSlot {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            owner: Decode::decode(reader)?,
            epoch: Decode::decode(reader)?,
            closed: Decode::decode(reader)?,
            open: Decode::decode(reader)?,
        })
    }
}

impl Encode for Hints {
    fn encode(&self, out: &mut Vec<u8>) {
        self.idle.encode(out);
        self.oldest_stub_s.encode(out);
    }
}

impl Decode for Hints {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { idle: Decode::decode(reader)?, oldest_stub_s: Decode::decode(reader)? })
    }
}

impl Encode for Reap {
    fn encode(&self, out: &mut Vec<u8>) {
        self.next.encode(out);
        self.again.encode(out);
    }
}

impl Decode for Reap {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { next: Decode::decode(reader)?, again: Decode::decode(reader)? })
    }
}
