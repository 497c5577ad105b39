//! Settings that groups were given.
//!
//! Purpose: what IncrementalAlterConfigs and AlterConfigs stored for a group, whether the group exists or not, as in
//! Kafka. Invariant: a group without settings has no entry. What it does not do: check values (that is
//! [`settings::group`](crate::settings::group)), act on them.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use semel_events::{Decode, DecodeError, Encode, Event, GroupSettingsChanged, Reader, Setting, Visible};
use semel_types::GroupId;

/// Settings by group; cheap to clone.
#[derive(Clone, Default)]
pub struct GroupSettings {
    by_group: RedBlackTreeMapSync<GroupId, Arc<Vec<Setting>>>,
}

impl GroupSettings {
    /// Settings that a group was given.
    #[must_use]
    pub fn of(&self, group: &GroupId) -> &[Setting] {
        self.by_group.get(group).map_or(&[], |settings| settings.as_slice())
    }

    /// Applies one event, live and on replay.
    pub fn apply(&mut self, event: &Event, visible: &mut Vec<Visible>) {
        if let Event::GroupSettingsChanged(GroupSettingsChanged { group, settings, .. }) = event {
            self.set(group.clone(), settings.clone());
            visible.push(Visible::GroupSettings { group: group.clone(), settings: settings.clone() });
        }
    }

    fn set(&mut self, group: GroupId, settings: Vec<Setting>) {
        if settings.is_empty() {
            self.by_group.remove_mut(&group);
        } else {
            self.by_group.insert_mut(group, Arc::new(settings));
        }
    }

    /// Rebuilds the published view after a snapshot.
    pub fn visible(&self, out: &mut Vec<Visible>) {
        out.extend(self.by_group.iter().map(|(group, settings)| Visible::GroupSettings {
            group: group.clone(),
            settings: settings.to_vec(),
        }));
    }

    /// Appends the snapshot form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        (self.by_group.size() as u64).encode(out);
        for (group, settings) in self.by_group.iter() {
            group.encode(out);
            settings.encode(out);
        }
    }

    /// Reads the snapshot form.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut all = Self::default();
        for _ in 0..reader.length()? {
            let group = Decode::decode(reader)?;
            all.set(group, Decode::decode(reader)?);
        }
        Ok(all)
    }
}
