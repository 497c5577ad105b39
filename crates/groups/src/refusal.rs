//! Who claims to commit, and why a group refuses.

use core::fmt;

/// What a request says about the member that commits (KIP-447 for transactions).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'a> {
    /// The member's generation; `None` for a client that manages its partitions itself.
    pub generation: Option<i32>,
    /// The member's id, empty for none.
    pub member_id: &'a str,
    /// The static member's name.
    pub instance: Option<&'a str>,
    /// The offsets belong to a transaction.
    pub transactional: bool,
    /// The request's version is one that members of consumer groups may use (KIP-848).
    pub knows_epochs: bool,
}

impl Member<'_> {
    /// A client that belongs to no generation.
    pub const NONE: Member<'static> =
        Member { generation: None, member_id: "", instance: None, transactional: false, knows_epochs: true };
}

/// Why a group refuses. Nothing that is durable changes when it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The group's id is empty.
    InvalidGroupId,
    /// The session timeout is out of the operator's bounds.
    InvalidSessionTimeout,
    /// A new member has to come back with the id that it is given (KIP-394).
    MemberIdRequired,
    /// `group.max.size`, or the bytes that one generation may take.
    GroupFull,
    /// The assignments take more bytes than one generation may.
    AssignmentTooLarge,
    /// The protocol is not that of the group, or nobody else knows it.
    InconsistentProtocol,
    /// Another member has taken the place of this static one (KIP-345).
    FencedInstance,
    /// The group is in another generation.
    IllegalGeneration,
    /// The group does not exist and the request claims a generation of it.
    UnknownGeneration,
    /// The group has no such member.
    UnknownMember,
    /// The group rebalances: join, or ask again.
    RebalanceInProgress,
    /// There is no such group.
    UnknownGroup,
    /// The group has members, or offsets of undecided transactions.
    NonEmpty,
    /// Members of the group read this topic.
    Subscribed,
    /// An undecided transaction carries an offset of this partition.
    UnstableOffset,
    /// The member is not in this epoch: it has to give everything up and join anew (KIP-848).
    FencedMember,
    /// The member has since got another epoch: ask again with that one (KIP-848).
    StaleMember,
    /// The static name belongs to a member that has not left (KIP-848).
    UnreleasedInstance,
    /// There is no such assignor.
    UnsupportedAssignor,
    /// The pattern of topics is no regular expression.
    InvalidPattern,
    /// A member of a consumer group commits with a version that knows no epochs.
    NeedsEpochs,
    /// The application's topology cannot be (KIP-1071).
    InvalidTopology,
    /// The heartbeat lacks or has what it must not.
    InvalidHeartbeat(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidGroupId => "a group's id is not empty",
            Self::InvalidSessionTimeout => "the session timeout is out of bounds",
            Self::MemberIdRequired => "a new member comes back with the id that it is given",
            Self::GroupFull => "the group is full",
            Self::AssignmentTooLarge => "the assignments are too large",
            Self::InconsistentProtocol => "the protocol is not that of the group",
            Self::FencedInstance => "another member has taken the place of this static one",
            Self::IllegalGeneration => "the group is in another generation",
            Self::UnknownGeneration => "the group has no such generation",
            Self::UnknownMember => "the group has no such member",
            Self::RebalanceInProgress => "the group rebalances",
            Self::UnknownGroup => "there is no such group",
            Self::NonEmpty => "the group is not empty",
            Self::Subscribed => "members of the group read this topic",
            Self::UnstableOffset => "an undecided transaction carries this offset",
            Self::FencedMember => "the member is not in this epoch: give everything up and join anew",
            Self::StaleMember => "the member has since got another epoch",
            Self::UnreleasedInstance => "the static name belongs to a member that has not left",
            Self::UnsupportedAssignor => "there is no such assignor",
            Self::InvalidPattern => "the pattern of topics is no regular expression",
            Self::NeedsEpochs => "members of consumer groups commit with version 9 or above",
            Self::InvalidTopology => "the topology cannot be",
            Self::InvalidHeartbeat(what) => what,
        })
    }
}

impl core::error::Error for Refusal {}
