//! When a connection is woken, and how often.

use std::{
    pin::pin,
    sync::atomic::AtomicUsize,
    task::{Context, Poll},
};

use super::*;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn answer(rests_on: u64) -> Delivery {
    let (token, rests_on) = (RequestToken::new(rests_on), LogSequence::new(rests_on));
    Delivery::Answer { token, reply: NodeReply::Nothing, rests_on }
}

/// True if the connection would run now.
fn is_awake(mailbox: &Mailbox, count: &Arc<Count>) -> bool {
    let waker = Waker::from(Arc::clone(count));
    matches!(pin!(mailbox.arrived()).poll(&mut Context::from_waker(&waker)), Poll::Ready(()))
}

#[test]
fn a_connection_is_woken_when_its_first_answer_is_due_and_once_for_all_that_were_left() {
    let (mailbox, published, count) = (Mailbox::new(), Published::new(), Arc::new(Count::default()));
    assert!(mailbox.put(answer(5)), "the first is to be settled");
    assert!(!mailbox.put(answer(6)), "the second comes with it");
    mailbox.settle(&published);
    assert!(!is_awake(&mailbox, &count), "decided and not durable is no news");
    published.publish(LogSequence::new(6), &[], Vec::new());
    assert!(is_awake(&mailbox, &count));
    assert!(!is_awake(&mailbox, &count), "once");
    let mut taken = Vec::new();
    mailbox.take(&mut taken);
    assert_eq!(taken.len(), 2);
    assert_eq!(published.waiting(), (0, 0));
}

#[test]
fn a_connection_that_may_not_send_more_is_woken_by_a_decision() {
    let (mailbox, published, count) = (Mailbox::new(), Published::new(), Arc::new(Count::default()));
    assert!(mailbox.listen(true));
    mailbox.put(answer(5));
    mailbox.settle(&published);
    assert!(is_awake(&mailbox, &count));
    assert!(!mailbox.listen(true), "there is something to take first");
}

#[test]
fn what_is_due_already_and_a_close_wake_at_once() {
    let (mailbox, published, count) = (Mailbox::new(), Published::new(), Arc::new(Count::default()));
    published.publish(LogSequence::new(9), &[], Vec::new());
    mailbox.put(answer(9));
    mailbox.settle(&published);
    assert!(is_awake(&mailbox, &count));
    let closed = Mailbox::new();
    closed.put(Delivery::Close);
    closed.settle(&published);
    assert!(is_awake(&closed, &count));
}

#[test]
fn an_answer_taken_before_it_is_due_leaves_no_registration_behind() {
    let (mailbox, published) = (Mailbox::new(), Published::new());
    mailbox.put(answer(5));
    mailbox.settle(&published);
    assert_eq!(published.waiting(), (1, 0));
    mailbox.take(&mut Vec::new());
    assert_eq!(published.waiting(), (0, 0));
}
