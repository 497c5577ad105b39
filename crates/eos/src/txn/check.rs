//! Whole-state checks of the coordinator: EOS-30 to EOS-37 of `docs/invariants.md`. That slots of the producer table
//! agree with it is EOS-18.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
};

use semel_types::{MAX_PARTITIONS_PER_TRANSACTION, MAX_USABLE_EPOCH, Now, ProducerId, TransactionalId};

use super::{Coordinator, FENCES_IN_ALL, FENCES_PER_ID, TransactionalIdEntry};
use crate::{State, check::Violation, fence};

/// Checks everything that the coordinator promises about the state.
///
/// # Errors
/// The first invariant that does not hold.
pub(crate) fn check(state: &State) -> Result<(), Violation> {
    let mut owners = BTreeMap::new();
    for (id, entry) in state.transactions.iter() {
        check_entry(id, entry)?;
        if let Some(other) = owners.insert(entry.identity.id, id) {
            return violation("EOS-30", format!("{id:?} and {other:?} share {}", entry.identity));
        }
    }
    check_indexes(&state.transactions)?;
    check_partitions(state, &owners)?;
    check_fences(&state.transactions)
}

fn violation(rule: &'static str, found: String) -> Result<(), Violation> {
    Err(Violation { rule, found })
}

/// EOS-31, EOS-33, EOS-34.
fn check_entry(id: &TransactionalId, entry: &TransactionalIdEntry) -> Result<(), Violation> {
    if entry.identity.epoch.get() > MAX_USABLE_EPOCH {
        return violation("EOS-31", format!("{id:?} holds {}", entry.identity));
    }
    if let Some(open) = entry.open() {
        let in_bounds = (1..=MAX_PARTITIONS_PER_TRANSACTION).contains(&open.size());
        if !in_bounds || open.number != entry.last_number {
            return violation("EOS-33", format!("{id:?}: {open:?}, last {}", entry.last_number));
        }
    }
    match entry.remembered {
        Some(pair) if fence::is_same(pair.stamp, entry.identity) || pair.number > entry.last_number => {
            violation("EOS-34", format!("{id:?}: {pair:?} against {}", entry.identity))
        }
        Some(_) | None => Ok(()),
    }
}

/// EOS-32: each id stands once in the index that fits its state, at the right moment.
fn check_indexes(transactions: &Coordinator) -> Result<(), Violation> {
    let index = |open: bool| -> BTreeSet<(Now, &TransactionalId)> {
        let entries = transactions.iter().filter(|(_, entry)| entry.open().is_some() == open);
        entries.map(|(id, entry)| (entry.deadline().unwrap_or(entry.updated), id)).collect()
    };
    if transactions.deadlines().collect::<BTreeSet<_>>() != index(true) {
        return violation("EOS-32", String::from("the index of deadlines"));
    }
    if transactions.idle().collect::<BTreeSet<_>>() != index(false) {
        return violation("EOS-32", String::from("the index of idle ids"));
    }
    Ok(())
}

/// EOS-37: what is open in a partition is open at the coordinator, and the transaction holds the partition.
fn check_partitions(state: &State, owners: &BTreeMap<ProducerId, &TransactionalId>) -> Result<(), Violation> {
    for (partition, numbers) in state.partitions() {
        for (first, producer) in numbers.open_transactions() {
            let open = owners.get(&producer).and_then(|id| state.transactions.open(id));
            if !open.is_some_and(|open| open.partitions.contains(&partition)) {
                return violation("EOS-37", format!("{partition}: {producer} from {first} on"));
            }
        }
    }
    Ok(())
}

/// EOS-36: the bounds of the fence log.
fn check_fences(transactions: &Coordinator) -> Result<(), Violation> {
    let log = transactions.fences();
    let most = log.iter().map(|fence| log.len_of(&fence.id)).max().unwrap_or(0);
    if log.len() > FENCES_IN_ALL || most > FENCES_PER_ID {
        return violation("EOS-36", format!("{} in all, {most} of one id", log.len()));
    }
    Ok(())
}
