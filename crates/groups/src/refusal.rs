//! Who claims to commit, and why a group refuses.

use core::fmt;

/// What a request says about the member that sent it (KIP-447 for transactions).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'a> {
    /// The member's generation; `None` for a client that manages its partitions itself.
    pub generation: Option<i32>,
    /// The member's id, empty for none.
    pub member_id: &'a str,
}

impl Member<'_> {
    /// A client that belongs to no generation.
    pub const NONE: Member<'static> = Member { generation: None, member_id: "" };
}

/// Why a group refuses a commit. Nothing changes when it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The group does not exist and the request claims a generation of it.
    IllegalGeneration,
    /// The group has no such member.
    UnknownMember,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IllegalGeneration => "the group has no such generation",
            Self::UnknownMember => "the group has no such member",
        })
    }
}

impl core::error::Error for Refusal {}
