//! DeleteTopics (key 20).
//!
//! Versions: 4 is flexible. 5 has error messages. 6 deletes by id too.

use alloc::vec::Vec;

use semel_types::TopicId;

use crate::{Text, WireCode, message::message};

message! {
    /// Topics to delete.
    pub struct DeleteTopicsRequest for DeleteTopics {
        /// By name or id, from version 6.
        [6..] topics: Vec<DeleteTopic>,
        /// By name, below version 6.
        [..=5] topic_names: Vec<Text>,
        /// How long the broker may wait for the topics to be gone.
        [0..] timeout_ms: i32,
    }
}

message! {
    /// A topic to delete.
    pub struct DeleteTopic {
        /// Its name; null if named by id.
        [6.., null 6..] name: Option<Text>,
        /// Its id; all zero if named by name.
        [6..] topic_id: TopicId,
    }
}

message! {
    /// What became of each topic.
    pub struct DeleteTopicsResponse for DeleteTopics {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// By topic.
        [0..] responses: Vec<DeletedTopic>,
    }
}

message! {
    /// The result for one topic.
    pub struct DeletedTopic {
        /// Its name; null if named by an unknown id.
        [0.., null 6..] name: Option<Text> = Some(Text::EMPTY),
        /// Its id.
        [6..] topic_id: TopicId,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Why, for people.
        [5.., null 5..] error_message: Option<Text>,
    }
}
