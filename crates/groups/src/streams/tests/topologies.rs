//! What topologies need of topics.

use super::*;

fn known(topology: &StreamsTopology, topics: &[(&str, u32)]) -> Vec<semel_events::StreamsKnownTopic> {
    let mut catalog = Catalog::default();
    topics.iter().for_each(|(topic, partitions)| catalog.make(topic, *partitions));
    known_topics(topology, &catalog)
}

fn configured(topology: &StreamsTopology, topics: &[(&str, u32)]) -> Configured {
    configure(topology, &known(topology, topics)).expect("it can be")
}

fn problem(topology: &StreamsTopology, topics: &[(&str, u32)]) -> (Status, String) {
    let problem = configured(topology, topics).problem.expect("there is a problem");
    (problem.status, problem.detail)
}

fn two(first: StreamsSubtopology, second: StreamsSubtopology) -> StreamsTopology {
    StreamsTopology { epoch: 0, subtopologies: vec![first, second] }
}

#[test]
fn repartition_topics_and_changelogs_follow_the_sources() {
    let found = configured(&counting(), &[("in", 3)]);
    assert_eq!(found.internal[&name("app-repartition")], 3);
    assert_eq!(found.internal[&name("app-changelog")], 3);
    assert_eq!(found.subtopologies[&name("1")].tasks, 3);
    assert!(found.subtopologies[&name("1")].is_stateful && !found.subtopologies[&name("0")].is_stateful);
    let missing: Vec<_> = found.missing.iter().map(|one| (&*one.topic.name, one.partitions)).collect();
    assert_eq!(missing, [("app-changelog", 3), ("app-repartition", 3)]);
    let (status, detail) = problem(&counting(), &[("in", 3)]);
    assert_eq!(status, Status::MissingInternalTopics);
    assert_eq!(detail, "Internal topics are missing: app-changelog, app-repartition");
}

#[test]
fn a_topology_whose_topics_are_there_is_ready() {
    let topics = [("in", 3), ("app-repartition", 3), ("app-changelog", 3)];
    assert!(configured(&counting(), &topics).is_ready());
}

#[test]
fn missing_sources_are_named_three_at_most() {
    let topology = StreamsTopology { epoch: 0, subtopologies: vec![part("0", &["d", "a", "c", "b", "e"])] };
    let due = "Source topics a, b, c and 2 additional topics are missing.".to_string();
    assert_eq!(problem(&topology, &[]), (Status::MissingSourceTopics, due));
}

#[test]
fn an_internal_topic_with_another_count_is_a_problem() {
    let due = "Existing topic app-repartition has different number of partitions: expected 3, found 4";
    let found = problem(&counting(), &[("in", 3), ("app-repartition", 4)]);
    assert_eq!(found, (Status::IncorrectlyPartitionedTopics, due.to_string()));
}

#[test]
fn a_chain_of_repartition_topics_is_decided_in_rounds_in_any_order() {
    let reads = |id: &str, topic: &str, sinks: &[&str]| StreamsSubtopology {
        repartition_sources: vec![internal(topic, 0)],
        repartition_sinks: sinks.iter().map(|sink| name(sink)).collect(),
        ..part(id, &[])
    };
    let source = StreamsSubtopology { repartition_sinks: vec![name("r1")], ..part("9", &["in"]) };
    let subtopologies =
        vec![reads("0", "r2", &["r3"]), reads("1", "r3", &[]), reads("2", "r1", &["r2"]), source];
    let found = configured(&StreamsTopology { epoch: 0, subtopologies }, &[("in", 5)]);
    assert!(["r1", "r2", "r3"].iter().all(|topic| found.internal[&name(topic)] == 5));
}

#[test]
fn a_fixed_count_holds_and_is_handed_on() {
    let first = StreamsSubtopology { repartition_sinks: vec![name("r")], ..part("0", &["in"]) };
    let second = StreamsSubtopology {
        repartition_sources: vec![internal("r", 7)],
        changelogs: vec![internal("c", 0)],
        ..part("1", &[])
    };
    let found = configured(&two(first, second), &[("in", 2)]);
    assert_eq!((found.internal[&name("r")], found.internal[&name("c")]), (7, 7));
}

fn joined(fixed: i32) -> StreamsTopology {
    let first = StreamsSubtopology { repartition_sinks: vec![name("r")], ..part("0", &["big"]) };
    let group = semel_events::StreamsCopartition { sources: vec![0], repartition_sources: vec![0] };
    let second = StreamsSubtopology {
        repartition_sources: vec![internal("r", fixed)],
        copartitions: vec![group],
        ..part("1", &["small"])
    };
    two(first, second)
}

#[test]
fn copartitioned_repartition_topics_take_the_count_of_the_source() {
    let found = configured(&joined(0), &[("big", 8), ("small", 2)]);
    assert_eq!(found.internal[&name("r")], 2);
    assert_eq!(found.subtopologies[&name("1")].tasks, 2);
}

#[test]
fn a_fixed_count_that_differs_from_the_copartitioned_source_is_a_problem() {
    let (status, detail) = problem(&joined(5), &[("big", 8), ("small", 2)]);
    assert_eq!(status, Status::IncorrectlyPartitionedTopics);
    assert!(detail.starts_with("Number of partitions [5] of repartition topic [r]"), "{detail}");
}

#[test]
fn copartitioned_sources_need_the_same_count() {
    let group = semel_events::StreamsCopartition { sources: vec![0, 1], repartition_sources: vec![] };
    let reads = StreamsSubtopology { copartitions: vec![group], ..part("0", &["a", "b"]) };
    let topology = StreamsTopology { epoch: 0, subtopologies: vec![reads] };
    let due = "Following topics do not have the same number of partitions: [{a=2, b=3}]".to_string();
    assert_eq!(problem(&topology, &[("a", 2), ("b", 3)]), (Status::IncorrectlyPartitionedTopics, due));
    assert!(configured(&topology, &[("a", 3), ("b", 3)]).is_ready());
}

#[test]
fn what_cannot_be_is_refused_whatever_topics_there_are() {
    let negative = StreamsTopology { epoch: -1, subtopologies: vec![] };
    let twice = two(part("0", &["a"]), part("0", &["b"]));
    let reads_nothing = StreamsTopology { epoch: 0, subtopologies: vec![part("0", &[])] };
    let group = semel_events::StreamsCopartition { sources: vec![1], repartition_sources: vec![] };
    let leads_nowhere = StreamsSubtopology { copartitions: vec![group], ..part("0", &["a"]) };
    let leads_nowhere = StreamsTopology { epoch: 0, subtopologies: vec![leads_nowhere] };
    for topology in [negative, twice, reads_nothing, leads_nowhere] {
        assert!(check_topology(&topology).is_err(), "{topology:?}");
    }
    assert_eq!(check_topology(&counting()), Ok(()));
}

#[test]
fn loops_and_sources_that_nobody_writes_are_refused() {
    let looped = StreamsSubtopology {
        repartition_sources: vec![internal("r", 0)],
        repartition_sinks: vec![name("r")],
        ..part("0", &[])
    };
    let unwritten = StreamsSubtopology { repartition_sources: vec![internal("r", 0)], ..part("0", &["in"]) };
    for reads in [looped, unwritten] {
        let topology = StreamsTopology { epoch: 0, subtopologies: vec![reads] };
        assert!(configure(&topology, &known(&topology, &[("in", 1)])).is_err());
    }
}
