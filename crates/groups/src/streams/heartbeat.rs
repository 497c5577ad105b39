//! Heartbeats: joining, reporting, learning.

use alloc::{borrow::Cow, format, string::String, sync::Arc, vec::Vec};

use semel_events::{
    GroupKind, GroupKindChanged, StreamsEpochStarted, StreamsKnownTopic, StreamsMember, StreamsMemberChanged,
    StreamsTopology, StreamsTopologySet,
};
use semel_types::{
    Context, DurationMs, GroupId,
    mutation::{Mutation, mutated},
};

use super::{
    AWAY, Configured, Denied, Heartbeat, InvalidTopology, MissingTopic, Roster, Seat, Settings, Sides,
    Status, TaskId, Tasks, Told, check_topology, configure, draft::Draft, known_topics,
};
use crate::{Kind, MemberId, Refusal, history::Reason};

/// What a heartbeat comes to, before anything is taken.
struct Plan<'a> {
    /// The member before: one with this id, or the static one whose place it takes.
    before: Option<&'a Seat>,
    member: StreamsMember,
    /// The static member whose place it takes.
    replaces: Option<MemberId>,
    topology: Cow<'a, StreamsTopology>,
    topics: Vec<StreamsKnownTopic>,
    configured: Arc<Configured>,
}

/// Internal topics that this heartbeat needs and that do not exist. None if it is to be refused.
#[must_use]
pub fn missing_topics(
    sides: Sides<'_>,
    settings: &Settings,
    (group, beat): (&GroupId, &Heartbeat),
    context: &Context,
) -> Vec<MissingTopic> {
    let draft = Draft::new(sides, settings, group, context.now);
    let roster = draft.roster.clone();
    draft.plan(&roster, beat).map(|plan| plan.configured.missing.clone()).unwrap_or_default()
}

impl Draft<'_> {
    pub(super) fn heartbeat(&mut self, beat: &Heartbeat, creation_errors: &str) -> Result<Told, Denied> {
        let roster = self.roster.clone();
        let plan = self.plan(&roster, beat)?;
        let was_empty = roster.is_empty();
        self.take_kind();
        let is_new = roster.topology().is_none();
        if is_new {
            let (group, topology, now) = (self.id.clone(), plan.topology.clone().into_owned(), self.now);
            self.emit(StreamsTopologySet { group, topology, now }, Roster::set_topology);
        }
        let changes_assignment = self.take_member(beat, &plan);
        self.note_offsets(&beat.member, beat.offsets.as_ref(), beat.end_offsets.as_ref());
        let settings_changed =
            self.roster.assignment_settings() != (self.settings.standby_replicas, &*self.settings.tags);
        let topics_changed = !is_new && plan.topics != roster.topics();
        if changes_assignment {
            let is_member = roster.seat(&beat.member).is_some();
            let reason = if is_member { Reason::SubscriptionChanged } else { Reason::Joined };
            self.note_cause(reason, Some(&plan.member));
        }
        if topics_changed {
            self.note_cause(Reason::TopicsChanged, None);
        }
        if is_new || changes_assignment || settings_changed || topics_changed {
            self.start_epoch(plan.topics.clone());
        }
        let mut status = Vec::new();
        status.extend(stale_topology(&plan));
        status.extend(self.advance_target(was_empty));
        self.reconcile(&beat.member, beat.owned.as_ref());
        self.touch(&beat.member);
        if beat.shutdown && self.live.shutdown_by.is_none() {
            self.live_mut().shutdown_by = Some(Arc::clone(&beat.member));
        }
        status.extend(self.problem(creation_errors));
        status.extend(self.shutdown_status());
        status.extend(self.missing_tags(beat, &plan.member));
        Ok(self.tell(beat, plan.before, status))
    }

    /// Who is it, may it, and what does its topology need? Reads only.
    fn plan<'a>(&self, roster: &'a Roster, beat: &'a Heartbeat) -> Result<Plan<'a>, Denied> {
        self.check_kind(beat)?;
        let (before, replaces) = self.member_before(roster, beat)?;
        let member = described(before, beat);
        let topology = topology(roster, beat)?;
        let topics = known_topics(&topology, self.topics);
        let known = roster.configured().filter(|_| roster.topics() == topics);
        let configured = match known {
            Some(configured) => Arc::clone(configured),
            None => Arc::new(configure(&topology, &topics).map_err(invalid_topology)?),
        };
        if let (true, Some(owned)) = (configured.is_ready(), &beat.owned) {
            check_tasks(&configured, owned)?;
        }
        Ok(Plan { before, member, replaces, topology, topics, configured })
    }

    /// A new group, or a classic one without members, becomes a streams group when a member joins.
    fn check_kind(&self, beat: &Heartbeat) -> Result<(), Denied> {
        let joins = beat.member_epoch == 0;
        let free = match self.kind {
            Some(Kind::Streams(_)) => return self.check_size(beat),
            Some(Kind::Classic(membership)) => membership.is_empty() && !self.is_rebalancing,
            Some(Kind::Consumer(_)) => false,
            None => !self.is_rebalancing,
        };
        if joins && free {
            return self.check_size(beat);
        }
        let what = if self.kind.is_none() { "not found" } else { "is not a streams group" };
        Err((Refusal::UnknownGroup, Some(format!("Group {} {what}.", self.id))))
    }

    fn check_size(&self, beat: &Heartbeat) -> Result<(), Denied> {
        let returns = beat.instance.as_ref().is_some_and(|name| self.roster.by_instance(name).is_some());
        let is_known = returns || self.roster.seat(&beat.member).is_some();
        if beat.member_epoch != 0 || is_known || self.roster.len() < self.settings.size_max {
            return Ok(());
        }
        let size = self.settings.size_max;
        let detail = format!("The streams group has reached its maximum capacity of {size} members.");
        Err((Refusal::GroupFull, Some(detail)))
    }

    fn member_before<'a>(
        &self,
        roster: &'a Roster,
        beat: &Heartbeat,
    ) -> Result<(Option<&'a Seat>, Option<MemberId>), Denied> {
        let Some(instance) = &beat.instance else {
            let seat = roster.seat(&beat.member);
            let detail = || format!("Member {} is not a member of group {}.", beat.member, self.id);
            if beat.member_epoch != 0 && seat.is_none() {
                return Err((Refusal::UnknownMember, Some(detail())));
            }
            seat.map_or(Ok(()), |seat| check_epoch(seat, beat))?;
            return Ok((seat, None));
        };
        let Some(seat) = roster.by_instance(instance) else {
            return match beat.member_epoch {
                0 => Ok((roster.seat(&beat.member), None)),
                _ => Err((Refusal::UnknownMember, Some(format!("Instance id {instance} is unknown.")))),
            };
        };
        if beat.member_epoch == 0 {
            if seat.position.member_epoch != AWAY {
                return Err((Refusal::UnreleasedInstance, Some(taken(beat, instance, seat))));
            }
            return Ok((Some(seat), Some(Arc::clone(&seat.member.id))));
        }
        if seat.member.id != beat.member && !mutated(Mutation::StreamsInstanceNotFenced) {
            return Err((Refusal::FencedInstance, Some(taken(beat, instance, seat))));
        }
        check_epoch(seat, beat)?;
        Ok((Some(seat), None))
    }

    fn take_kind(&mut self) {
        if matches!(self.kind, Some(Kind::Streams(_))) {
            return;
        }
        let epoch = self.kind.map_or(0, Kind::epoch);
        let kind = GroupKind::Streams;
        let event = GroupKindChanged { group: self.id.clone(), kind, epoch, now: self.now };
        self.emit(event, |roster, event| *roster = Roster::empty(event.epoch));
    }

    /// Takes what the member says of itself; does it change what is to be assigned? Of a static member only what the
    /// assignor looks at does.
    fn take_member(&mut self, beat: &Heartbeat, plan: &Plan<'_>) -> bool {
        let old = plan.before.map(|seat| &seat.member);
        if old == Some(&plan.member) && plan.replaces.is_none() {
            return false;
        }
        if let Some(replaced) = &plan.replaces {
            self.live_mut().forget(replaced);
        }
        let event = StreamsMemberChanged {
            group: self.id.clone(),
            member: plan.member.clone(),
            replaces: plan.replaces.clone(),
            now: self.now,
        };
        self.emit(event, Roster::change);
        let assignor_looks_at = |member: &StreamsMember| {
            let StreamsMember { topology_epoch, rack, tags, process, .. } = member.clone();
            (topology_epoch, rack, tags, process)
        };
        match old {
            None => true,
            Some(old) if beat.instance.is_some() => assignor_looks_at(old) != assignor_looks_at(&plan.member),
            Some(_) => true,
        }
    }

    fn start_epoch(&mut self, topics: Vec<StreamsKnownTopic>) {
        let event = StreamsEpochStarted {
            group: self.id.clone(),
            epoch: self.roster.group_epoch().saturating_add(1),
            topics,
            standby_replicas: self.settings.standby_replicas,
            tags: self.settings.tags.clone(),
            now: self.now,
        };
        self.emit(event, Roster::start);
    }

    /// Computes the target of a new epoch, unless it is too early for it.
    fn advance_target(&mut self, was_empty: bool) -> Option<(Status, String)> {
        let delay = self.settings.initial_rebalance_delay;
        if was_empty && delay > DurationMs::default() && self.live.first_target_at.is_none() {
            self.live_mut().first_target_at = Some(self.now.plus(delay));
        }
        let delayed = |by: &str| {
            Some((Status::AssignmentDelayed, format!("Assignment delayed due to the configured {by}.")))
        };
        if self.live.first_target_at.is_some() {
            return delayed("initial rebalance delay");
        }
        if self.roster.assignment_epoch() >= self.roster.group_epoch() {
            return None;
        }
        let next = self.roster.assigned_at().map(|at| at.plus(self.settings.assignment_interval));
        if next.is_some_and(|next| self.now < next) {
            return delayed("assignment interval");
        }
        self.set_target();
        None
    }

    fn problem(&self, creation_errors: &str) -> Option<(Status, String)> {
        let problem = self.roster.configured()?.problem.as_ref()?;
        if mutated(Mutation::StreamsProblemNotTold) {
            return None;
        }
        let mut detail = problem.detail.clone();
        if problem.status == Status::MissingInternalTopics && !creation_errors.is_empty() {
            detail = format!("{detail}; Creation failed: {creation_errors}.");
        }
        Some((problem.status, detail))
    }

    fn shutdown_status(&self) -> Option<(Status, String)> {
        let by = self.live.shutdown_by.as_ref()?;
        let detail = format!(
            "Streams group member {by} encountered a fatal error and requested a shutdown for the entire application."
        );
        Some((Status::ShutdownApplication, detail))
    }

    fn missing_tags(&self, beat: &Heartbeat, member: &StreamsMember) -> Option<(Status, String)> {
        let brings = |tag: &Arc<str>| member.tags.iter().any(|pair| pair.key == *tag);
        let missing: Vec<&str> =
            self.settings.tags.iter().filter(|tag| !brings(tag)).map(|tag| &**tag).collect();
        if missing.is_empty() || !beat.knows_missing_tags {
            return None;
        }
        let detail = format!(
            "Missing required client tags for rack-aware standby assignment: [{}]. Configure them via \
             'client.tag.<tagKey>' in your Streams config.",
            missing.join(", ")
        );
        Some((Status::MissingClientTags, detail))
    }

    fn tell(&mut self, beat: &Heartbeat, before: Option<&Seat>, status: Vec<(Status, String)>) -> Told {
        let seat = self.roster.seat(&beat.member).expect("the member is there").clone();
        let old = before.map(|before| before.position.assigned.clone()).unwrap_or_default();
        let changed = old != seat.position.assigned;
        let endpoint = before.and_then(|before| before.member.endpoint.as_ref());
        let moved = endpoint != seat.member.endpoint.as_ref();
        if moved || (changed && seat.member.endpoint.is_some()) {
            self.live_mut().endpoint_epoch += 1;
        }
        let endpoint_epoch = self.live.endpoint_epoch;
        Told {
            member: Arc::clone(&beat.member),
            member_epoch: seat.position.member_epoch,
            tasks: (beat.member_epoch == 0 || changed).then(|| seat.position.assigned.clone()),
            status,
            endpoint_epoch,
            served: (endpoint_epoch != beat.endpoint_epoch).then(|| self.served()),
        }
    }
}

fn taken(beat: &Heartbeat, instance: &str, seat: &Seat) -> String {
    let (member, owner) = (&beat.member, &seat.member.id);
    format!(
        "Static member {member} with instance id {instance} is not the owner of that name: member {owner} is."
    )
}

/// A member in an older epoch is let in if it missed the last answer only: it owns nothing beyond what it was given.
fn check_epoch(seat: &Seat, beat: &Heartbeat) -> Result<(), Denied> {
    let known = seat.position.member_epoch;
    let missed_one = beat.member_epoch == seat.position.previous_member_epoch
        && beat.owned.as_ref().is_some_and(|owned| seat.position.assigned.contain(owned));
    let is_there =
        beat.member_epoch == 0 || beat.member_epoch == known || (beat.member_epoch < known && missed_one);
    if is_there || mutated(Mutation::StreamsEpochNotChecked) {
        return Ok(());
    }
    let how = if beat.member_epoch > known { "greater" } else { "smaller" };
    let detail = format!(
        "The streams group member has a {how} member epoch ({}) than the one known by the group coordinator \
         ({known}). The member must abandon all its tasks and rejoin.",
        beat.member_epoch
    );
    Err((Refusal::FencedMember, Some(detail)))
}

/// The member as it is from here on.
fn described(before: Option<&Seat>, beat: &Heartbeat) -> StreamsMember {
    let old = before.map(|seat| &seat.member);
    let joins = beat.member_epoch == 0;
    let kept = |new: &Option<Arc<str>>, old: Option<&Option<Arc<str>>>| {
        new.clone().or_else(|| old.cloned().flatten())
    };
    let endpoint = beat.endpoint.clone();
    let old_endpoint = old.and_then(|old| old.endpoint.clone()).filter(|_| !joins);
    StreamsMember {
        id: Arc::clone(&beat.member),
        instance: kept(&beat.instance, old.map(|old| &old.instance)),
        rack: kept(&beat.rack, old.map(|old| &old.rack)),
        client_id: Arc::clone(&beat.client_id),
        client_host: Arc::clone(&beat.client_host),
        rebalance_timeout: (beat.rebalance_timeout)
            .or_else(|| old.map(|old| old.rebalance_timeout))
            .unwrap_or_default(),
        topology_epoch: (beat.topology.as_ref().map(|topology| topology.epoch))
            .or_else(|| old.map(|old| old.topology_epoch))
            .unwrap_or(-1),
        process: (beat.process.clone()).or_else(|| old.map(|old| old.process.clone())).unwrap_or_default(),
        endpoint: endpoint.or(old_endpoint),
        tags: (beat.tags.clone()).or_else(|| old.map(|old| old.tags.clone())).unwrap_or_default(),
    }
}

/// The group's topology: the first member says it, and it stays.
fn topology<'a>(roster: &'a Roster, beat: &'a Heartbeat) -> Result<Cow<'a, StreamsTopology>, Denied> {
    match (roster.topology(), &beat.topology) {
        (None, Some(topology)) => {
            check_topology(topology).map_err(invalid_topology)?;
            Ok(Cow::Borrowed(topology))
        }
        (Some(known), None) => Ok(Cow::Borrowed(known)),
        (Some(known), Some(topology)) if known.epoch > topology.epoch || **known == *topology => {
            Ok(Cow::Borrowed(known))
        }
        (Some(_), Some(_)) => {
            Err((Refusal::InvalidHeartbeat("Topology updates are not supported yet."), None))
        }
        (None, None) => {
            Err((Refusal::InvalidHeartbeat("Topology must be non-null when (re-)joining."), None))
        }
    }
}

fn invalid_topology(InvalidTopology(detail): InvalidTopology) -> Denied {
    (Refusal::InvalidTopology, Some(detail))
}

fn stale_topology(plan: &Plan<'_>) -> Option<(Status, String)> {
    let (mine, group) = (plan.member.topology_epoch, plan.topology.epoch);
    let detail =
        || format!("The member's topology epoch {mine} is behind the group's topology epoch {group}.");
    (mine < group).then(|| (Status::StaleTopology, detail()))
}

/// Does the member only own tasks that there are?
fn check_tasks(configured: &Configured, owned: &Tasks) -> Result<(), Denied> {
    let exists = |task: &TaskId| {
        let part = configured.subtopologies.get(&task.subtopology);
        part.is_some_and(|part| u32::try_from(task.partition.get()).is_ok_and(|index| index < part.tasks))
    };
    let mut all = owned.active.iter().chain(&owned.standby).chain(&owned.warmup);
    match all.find(|task| !exists(task)) {
        None => Ok(()),
        Some(task) => {
            let detail =
                format!("Task {} of subtopology {} does not exist.", task.partition, task.subtopology);
            Err((Refusal::InvalidHeartbeat("The member owns a task that does not exist."), Some(detail)))
        }
    }
}
