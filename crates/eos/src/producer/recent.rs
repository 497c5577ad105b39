//! What the node remembers of recent Produce requests, outside the log.

/// Connections by producer id, and what was refused for want of room.
#[derive(Clone, Debug, Default)]
pub struct Recent {}

impl crate::Volatile {
    /// Notes what became of a judged batch. Called once for each, before [`Self::refused_for_room`] where that follows.
    pub fn note_produce(
        &mut self,
        _scope: &super::ProduceScope<'_>,
        _stamp: &super::BatchStamp,
        _partition: semel_types::PartitionHandle,
        _judgement: &super::Judgement,
    ) {
    }

    /// Notes that a batch that would have been appended was refused for want of room (56).
    pub fn refused_for_room(&mut self, _partition: semel_types::PartitionHandle, _stamp: &super::BatchStamp) {
    }
}
