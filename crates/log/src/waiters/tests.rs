//! Waiters: who is woken by a publication, and who is not.

use std::{
    sync::{
        atomic::AtomicUsize,
        mpsc::{Sender, channel},
    },
    task::Wake,
    thread,
};

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Signal(Sender<()>);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

fn publish(waiters: &Waiters, sequence: u64, changed: &[u32]) {
    let changed: Vec<_> = changed.iter().copied().map(PartitionHandle::new).collect();
    waiters.set_sequence(LogSequence::new(sequence));
    waiters.wake(LogSequence::new(sequence), &changed);
}

fn handles(numbers: &[u32]) -> Vec<PartitionHandle> {
    numbers.iter().copied().map(PartitionHandle::new).collect()
}

#[test]
fn only_the_waiters_whose_sequence_is_visible_are_woken() {
    let waiters = Arc::new(Waiters::default());
    let all: Vec<_> = (1..=4).map(|_| counted()).collect();
    let tickets: Vec<_> =
        (1..).zip(&all).map(|(n, (_, waker))| waiters.wake_when(LogSequence::new(n * 10), waker)).collect();
    publish(&waiters, 29, &[]);
    let woken: Vec<_> = all.iter().map(|(count, _)| count.0.load(Ordering::SeqCst)).collect();
    assert_eq!(woken, [1, 1, 0, 0]);
    assert_eq!(tickets.iter().map(Ticket::is_due).collect::<Vec<_>>(), [true, true, false, false]);
}

#[test]
fn a_sequence_that_is_already_visible_wakes_at_once() {
    let waiters = Arc::new(Waiters::default());
    publish(&waiters, 7, &[]);
    let (count, waker) = counted();
    let ticket = waiters.wake_when(LogSequence::new(7), &waker);
    assert!(ticket.is_due());
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(waiters.counts(), (0, 0));
}

#[test]
fn a_poll_is_woken_once_by_a_change_of_any_of_its_partitions() {
    let waiters = Arc::new(Waiters::default());
    let (count, waker) = counted();
    let ticket = waiters.wake_on_change(&handles(&[1, 2, 3]), &waker);
    publish(&waiters, 1, &[4]);
    assert_eq!((count.0.load(Ordering::SeqCst), ticket.is_due()), (0, false));
    publish(&waiters, 2, &[2, 3]);
    assert_eq!((count.0.load(Ordering::SeqCst), ticket.is_due()), (1, true));
    publish(&waiters, 3, &[1]);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

#[test]
fn dropped_tickets_leave_nothing_behind() {
    let waiters = Arc::new(Waiters::default());
    let (count, waker) = counted();
    for n in 1..1000 {
        let _held = (
            waiters.wake_when(LogSequence::new(n), &waker),
            waiters.wake_on_change(&handles(&[1, 2, n as u32]), &waker),
        );
    }
    assert_eq!(waiters.counts(), (0, 0));
    assert!(waiters.registered.lock().by_partition.is_empty());
    publish(&waiters, 5000, &[1, 2]);
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
}

#[test]
fn a_ticket_wakes_the_waker_it_was_given_last() {
    let waiters = Arc::new(Waiters::default());
    let ((first, first_waker), (second, second_waker)) = (counted(), counted());
    let ticket = waiters.wake_on_change(&handles(&[1]), &first_waker);
    assert!(ticket.update(&second_waker));
    publish(&waiters, 1, &[1]);
    assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
    assert!(!ticket.update(&first_waker));
}

#[test]
fn no_wake_up_is_lost_between_registration_and_publish() {
    let waiters = Arc::new(Waiters::default());
    let (sender, receiver) = channel();
    let waker = Waker::from(Arc::new(Signal(sender)));
    let publisher = {
        let waiters = Arc::clone(&waiters);
        thread::spawn(move || (1..=20_000).for_each(|sequence| publish(&waiters, sequence, &[])))
    };
    for sequence in 1..=20_000 {
        let _ticket = waiters.wake_when(LogSequence::new(sequence), &waker);
        receiver.recv().unwrap();
        assert!(waiters.sequence() >= LogSequence::new(sequence));
    }
    publisher.join().unwrap();
}

#[test]
fn futures_are_ready_once_what_they_wait_for_was_published() {
    let waiters = Arc::new(Waiters::default());
    let (count, waker) = counted();
    let mut context = Context::from_waker(&waker);
    let mut reached = waiters.reached(LogSequence::new(3));
    let mut changed = waiters.changed(&handles(&[9]));
    assert!(Pin::new(&mut reached).poll(&mut context).is_pending());
    assert!(Pin::new(&mut changed).poll(&mut context).is_pending());
    publish(&waiters, 2, &[8]);
    assert!(Pin::new(&mut reached).poll(&mut context).is_pending());
    publish(&waiters, 3, &[9]);
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
    assert!(Pin::new(&mut reached).poll(&mut context).is_ready());
    assert!(Pin::new(&mut changed).poll(&mut context).is_ready());
    assert_eq!(waiters.counts(), (0, 0));
}
