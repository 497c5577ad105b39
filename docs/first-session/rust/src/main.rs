//! A first session: transactions, a fenced instance, and a reader.

use std::time::Duration;

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer},
};

const LIMIT: Duration = Duration::from_secs(10);

fn server() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", "127.0.0.1:9092");
    config
}

fn instance() -> Result<ThreadedProducer<DefaultProducerContext>, KafkaError> {
    let producer: ThreadedProducer<_> = server().set("transactional.id", "rust-till").create()?;
    producer.init_transactions(LIMIT)?;
    Ok(producer)
}

fn order(text: &str) -> BaseRecord<'_, (), str> {
    BaseRecord::to("rust-orders").partition(0).payload(text)
}

fn main() -> Result<(), KafkaError> {
    let first = instance()?;
    first.begin_transaction()?;
    first.send(order("one coffee")).map_err(|(error, _)| error)?;
    first.send(order("one cake")).map_err(|(error, _)| error)?;
    first.commit_transaction(LIMIT)?;

    first.begin_transaction()?;
    first.send(order("a mistake")).map_err(|(error, _)| error)?;
    first.abort_transaction(LIMIT)?;

    first.begin_transaction()?;
    first.send(order("too late")).map_err(|(error, _)| error)?;
    first.flush(LIMIT)?;
    let _second = instance()?; // takes over: the open transaction of the first instance is aborted
    match first.commit_transaction(LIMIT) {
        Err(KafkaError::Transaction(refused)) if refused.code() == RDKafkaErrorCode::Fenced => {
            println!("the first instance is fenced");
        }
        other => panic!("expected to be fenced, got {other:?}"),
    }

    let reader: BaseConsumer = server()
        .set("group.id", "rust-readers")
        .set("isolation.level", "read_committed")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()?;
    let mut from_the_start = TopicPartitionList::new();
    from_the_start.add_partition_offset("rust-orders", 0, Offset::Beginning)?;
    reader.assign(&from_the_start)?;
    loop {
        match reader.poll(LIMIT) {
            Some(Ok(record)) => {
                let text = record.payload_view::<str>().and_then(Result::ok).unwrap_or_default();
                println!("{} {text}", record.offset());
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
            Some(Err(error)) => return Err(error),
            None => panic!("nothing came for ten seconds"),
        }
    }
}
