//! Who a member is, of whatever kind its group is. For people: nothing is decided by it.

use alloc::sync::Arc;

use semel_events::{ConsumerMember, GroupMember, StreamsMember};

use crate::MemberId;

/// What members of all kinds of groups say of themselves.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// The member's id.
    pub id: &'a MemberId,
    /// The static member's name.
    pub instance: &'a Option<Arc<str>>,
    /// Its `client.id`.
    pub client_id: &'a Arc<str>,
    /// The address that it came from, behind a slash.
    pub client_host: &'a Arc<str>,
}

macro_rules! is_somebody {
    ($($member:ty),*) => {
        $(impl<'a> From<&'a $member> for Who<'a> {
            fn from(member: &'a $member) -> Self {
                let (id, instance) = (&member.id, &member.instance);
                Self { id, instance, client_id: &member.client_id, client_host: &member.client_host }
            }
        })*
    };
}

is_somebody!(GroupMember, ConsumerMember, StreamsMember);
