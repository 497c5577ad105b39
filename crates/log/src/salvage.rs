//! `semel log salvage`: goes on without the damaged rest of the log, after setting it aside.
//!
//! Invariants: nothing is deleted, what is cut is kept under a name that no server reads; the log is cut only where
//! recovery refused; a server may write only after everything here is synced. What it does not do: mend data.

use std::{io, sync::Arc};

use semel_events::DecodeError;

use crate::{
    Corruption, OpenError, Options,
    disk::{BLOCK, Disk, DiskFile, WriteMode},
    files::{FileRules, side_name},
    format::group::GroupHeader,
    recover::{Directory, End, Sink, Walk, check_whole, search},
};

/// How the names of what was set aside end.
const ENDING: &str = ".salvaged";
/// Bytes copied at once.
const PIECE: usize = 1 << 20;

/// What was cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Salvaged {
    /// The damage, as recovery named it.
    pub corruption: Corruption,
    /// Names under which the cut parts were set aside.
    pub set_aside: Vec<String>,
}

/// Looks at groups without applying them.
struct Skip;

impl Sink for Skip {
    fn group(&mut self, _: &GroupHeader, _: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Cuts the log where recovery refuses it; `None` if it would open.
///
/// # Errors
/// As opening; [`OpenError::Corrupt`] if the damage is not in the rest of a file that is there.
pub fn salvage_disk(disk: Arc<dyn Disk>, options: &Options) -> Result<Option<Salvaged>, OpenError> {
    let mode = FileRules::new(options, 0).mode;
    let directory = Directory::read(disk, mode)?;
    let (end, _) = Walk::new(&directory, directory.start(), options).run(&mut Skip)?;
    match search(&directory, &end).and_then(|()| check_whole(&directory, &end)) {
        Ok(()) => Ok(None),
        Err(OpenError::Corrupt(corruption)) if directory.file(end.boundary.place.file).is_some() => {
            let set_aside = cut(&directory, &end)?;
            Ok(Some(Salvaged { corruption, set_aside }))
        }
        Err(error) => Err(error),
    }
}

fn cut(directory: &Directory, end: &End) -> io::Result<Vec<String>> {
    let (disk, place) = (&directory.disk, end.boundary.place);
    let file = directory.file(place.file).expect("the caller looked");
    let aside = format!("{}-from-{}{ENDING}", file.name, place.position);
    let copy = disk.create(&aside, WriteMode::Buffered)?;
    copy_tail(&*file.file, file.length, place.position, &*copy)?;
    disk.sync_directory()?;
    // A file that was cut gets its length back: recovery refuses a short one.
    let length = directory.short(place.file).map_or(file.length, |short| short.made);
    file.file.allocate(length)?;
    zero(&*file.file, place.position, length)?;
    let later = directory.files.iter().filter(|later| later.number > place.file).map(|later| &later.name);
    let nameless = directory.nameless.iter().map(|(name, _)| name);
    // Side files that reach into what is cut are made anew.
    let sides = directory.sides.iter().filter(|side| side.last >= place.file).map(|side| side_name(*side));
    let sides: Vec<String> = sides.collect();
    let mut set_aside = vec![aside];
    for name in later.chain(nameless).chain(&directory.damaged).chain(&sides) {
        let aside = format!("{name}{ENDING}");
        disk.rename(name, &aside)?;
        set_aside.push(aside);
    }
    disk.sync_directory()?;
    Ok(set_aside)
}

fn copy_tail(from: &dyn DiskFile, length: u64, position: u64, to: &dyn DiskFile) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut at = position;
    while at < length {
        bytes.resize(PIECE.min((length - at) as usize), 0);
        from.read(at, &mut bytes)?;
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        to.write(at - position, &[&bytes])?;
        at += bytes.len() as u64;
    }
    to.sync()
}

fn zero(file: &dyn DiskFile, position: u64, length: u64) -> io::Result<()> {
    for at in (position..length).step_by(PIECE) {
        let piece = (PIECE as u64).min(length - at) as usize;
        file.fill(at, piece / BLOCK * BLOCK)?;
    }
    file.sync()
}
