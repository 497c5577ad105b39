//! The broker under test: topics, producers, and reading back by assignment. Names are new in every run.

use std::env;
use std::process;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::statistics::Statistics;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use crate::checks::{equal, eventually};

/// For every call that waits for the broker.
pub const LIMIT: Duration = Duration::from_secs(20);

/// What a reader sees of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Committed records, up to the last stable offset.
    Committed,
    /// Every record, up to the high watermark.
    Uncommitted,
}

/// A producer that remembers the errors of its deliveries and its last statistics.
pub type TestProducer = BaseProducer<Reports>;

/// What the library reported outside its calls.
#[derive(Default)]
pub struct Reports {
    errors: Mutex<Vec<RDKafkaErrorCode>>,
    statistics: Mutex<Option<Statistics>>,
}

impl Reports {
    /// The errors of deliveries since the last call.
    pub fn take_errors(&self) -> Vec<RDKafkaErrorCode> {
        std::mem::take(&mut self.errors.lock().unwrap())
    }

    /// The requests of one API put on the wire, by a report made when the producer was older than this; if there is one.
    pub fn requests(&self, api: &str, older_than: Duration) -> Option<i64> {
        let statistics = self.statistics.lock().unwrap();
        let report = statistics.as_ref().filter(|report| report.age as u128 > older_than.as_micros())?;
        Some(report.brokers.values().filter_map(|broker| broker.req.get(api)).sum())
    }
}

impl ClientContext for Reports {
    // The library logs every expected fence too.
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, _: KafkaError, _: &str) {}

    fn stats(&self, report: Statistics) {
        *self.statistics.lock().unwrap() = Some(report);
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.errors.lock().unwrap().extend(error.rdkafka_error_code());
        }
    }
}

static BOOTSTRAP: LazyLock<Mutex<String>> =
    LazyLock::new(|| Mutex::new(env::var("BOOTSTRAP").expect("BOOTSTRAP is set")));

/// From now on everything here goes to this broker.
pub fn use_broker(bootstrap: String) {
    *BOOTSTRAP.lock().unwrap() = bootstrap;
}

/// Where it listens.
pub fn bootstrap() -> String {
    BOOTSTRAP.lock().unwrap().clone()
}

fn config() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", BOOTSTRAP.lock().unwrap().as_str());
    config
}

/// A name that no other run uses.
pub fn name(what: &str) -> String {
    static RUN: LazyLock<String> = LazyLock::new(|| {
        let since = SystemTime::UNIX_EPOCH.elapsed().expect("the clock is past 1970");
        format!("{:x}-{}", since.as_millis(), process::id())
    });
    format!("rust-{}-{what}", *RUN)
}

/// Makes a topic.
pub fn create_topic(what: &str, partitions: i32) -> String {
    let topic = name(what);
    let admin: AdminClient<_> = config().create().expect("an admin client");
    let wanted = [NewTopic::new(&topic, partitions, TopicReplication::Fixed(1))];
    let options = AdminOptions::new();
    let made = block_on(admin.create_topics(&wanted, &options)).expect("an answer to CreateTopics");
    made[0].as_ref().expect("the topic is created");
    topic
}

/// A producer with these settings beside idempotence.
pub fn producer(settings: &[(&str, &str)]) -> TestProducer {
    let mut config = config();
    config.set("enable.idempotence", "true");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create_with_context(Reports::default()).expect("a producer")
}

/// Sends these values in order, to be flushed by the caller.
pub fn enqueue(producer: &TestProducer, topic: &str, partition: i32, value: &str) {
    let mut record = BaseRecord::<(), str>::to(topic).partition(partition).payload(value);
    while let Err((error, again)) = producer.send(record) {
        equal(Some(RDKafkaErrorCode::QueueFull), error.rdkafka_error_code(), "send");
        producer.poll(Duration::from_millis(10));
        record = again;
    }
}

/// Sends one record and waits for its acknowledgement.
pub fn send(producer: &TestProducer, topic: &str, value: &str) {
    enqueue(producer, topic, 0, value);
    flush(producer);
}

/// Waits until everything is acknowledged.
pub fn flush(producer: &TestProducer) {
    producer.flush(LIMIT).expect("flush");
    equal(Vec::new(), producer.context().take_errors(), "delivery errors");
}

/// A consumer that nobody lets join a group; the library demands a name all the same.
pub fn consumer(isolation: Isolation, group: &str) -> BaseConsumer {
    let level = if isolation == Isolation::Committed { "read_committed" } else { "read_uncommitted" };
    config()
        .set("group.id", group)
        .set("isolation.level", level)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.wait.max.ms", "50")
        .create()
        .expect("a consumer")
}

/// One partition at one offset.
pub fn at(topic: &str, partition: i32, offset: i64) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("a valid offset");
    list
}

/// The last stable offset or the high watermark.
pub fn end(topic: &str, partition: i32, isolation: Isolation) -> i64 {
    consumer(isolation, "unused").fetch_watermarks(topic, partition, LIMIT).expect("watermarks").1
}

/// All values of one partition up to its end as that isolation sees it, by an assigned consumer.
pub fn read(topic: &str, partition: i32, isolation: Isolation) -> Vec<String> {
    if isolation == Isolation::Committed {
        let has_all_markers =
            || end(topic, partition, Isolation::Committed) == end(topic, partition, Isolation::Uncommitted);
        eventually(has_all_markers, "all markers written");
    }
    let reader = consumer(isolation, "unused");
    reader.assign(&at(topic, partition, 0)).expect("assign");
    let mut values = Vec::new();
    loop {
        match reader.poll(LIMIT).expect("a record or the end") {
            Ok(record) => {
                values.push(record.payload_view::<str>().expect("a value").expect("text").to_owned())
            }
            Err(KafkaError::PartitionEOF(_)) => return values,
            Err(error) => panic!("{topic}-{partition}, {isolation:?}: {error}"),
        }
    }
}
