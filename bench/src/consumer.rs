//! librdkafka as a C program uses it: a consumer that subscribes.

use std::{error::Error, ffi::CString, ptr, slice};

use rdkafka_sys as sys;

use crate::producer::{PATIENCE_MS, configure, open};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const NO_ERROR: sys::rd_kafka_resp_err_t = sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;

/// One member of a group.
pub struct Consumer {
    handle: *mut sys::rd_kafka_t,
    queue: *mut sys::rd_kafka_queue_t,
}

/// A record that was read.
pub struct Record {
    /// The number of its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its value.
    pub value: Vec<u8>,
}

impl Consumer {
    /// A consumer with these settings, subscribed to one topic.
    pub fn subscribe(settings: &[(&str, &str)], topic: &str) -> Outcome<Self> {
        let handle = open(sys::rd_kafka_type_t::RD_KAFKA_CONSUMER, configure(settings)?)?;
        // SAFETY: the handle is valid; its queue goes before it.
        let consumer = unsafe {
            sys::rd_kafka_poll_set_consumer(handle);
            Self { handle, queue: sys::rd_kafka_queue_get_consumer(handle) }
        };
        let topics = Offsets::new();
        topics.add(topic, -1)?;
        // SAFETY: both handles are valid.
        taken("subscribe", unsafe { sys::rd_kafka_subscribe(consumer.handle, topics.0) })?;
        Ok(consumer)
    }

    /// Up to `limit` records; waits for them as long as that.
    pub fn next(&self, limit: usize, timeout_ms: i32) -> Outcome<Vec<Record>> {
        let mut messages = vec![ptr::null_mut::<sys::rd_kafka_message_t>(); limit];
        // SAFETY: the queue is valid, the array has `limit` places.
        let count = unsafe {
            sys::rd_kafka_consume_batch_queue(self.queue, timeout_ms, messages.as_mut_ptr(), limit)
        };
        let count = usize::try_from(count).map_err(|_| "consume failed")?;
        let mut records = Vec::with_capacity(count);
        let mut failed = None;
        for message in &messages[..count] {
            // SAFETY: the library gave this message; it is destroyed once, after its value was copied.
            unsafe {
                let seen = &**message;
                if seen.err == NO_ERROR {
                    let value = slice::from_raw_parts(seen.payload.cast::<u8>(), seen.len).to_vec();
                    records.push(Record { partition: seen.partition, offset: seen.offset, value });
                } else {
                    failed = Some(seen.err);
                }
                sys::rd_kafka_message_destroy(*message);
            }
        }
        failed.map_or(Ok(records), |error| Err(format!("consume: {error:?}").into()))
    }

    /// Who this is in its group.
    pub fn member(&self) -> Outcome<Member> {
        // SAFETY: the handle is valid.
        let member = unsafe { sys::rd_kafka_consumer_group_metadata(self.handle) };
        if member.is_null() { Err("no member of a group".into()) } else { Ok(Member(member)) }
    }

    /// The sum of what the group has committed in the first partitions of a topic.
    pub fn committed(&self, topic: &str, partitions: i32) -> Outcome<u64> {
        let places = Offsets::new();
        for partition in 0..partitions {
            places.add(topic, partition)?;
        }
        // SAFETY: both handles are valid; the list has its elements as long as it lives.
        unsafe {
            taken("committed", sys::rd_kafka_committed(self.handle, places.0, PATIENCE_MS))?;
            let list = &*places.0;
            let found = slice::from_raw_parts(list.elems, usize::try_from(list.cnt)?);
            Ok(found.iter().filter_map(|place| u64::try_from(place.offset).ok()).sum())
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // SAFETY: both are valid and not used afterwards.
        unsafe {
            sys::rd_kafka_queue_destroy(self.queue);
            sys::rd_kafka_consumer_close(self.handle);
            sys::rd_kafka_destroy(self.handle);
        }
    }
}

/// A member as a producer names it when it sends offsets.
pub struct Member(pub *mut sys::rd_kafka_consumer_group_metadata_t);

impl Drop for Member {
    fn drop(&mut self) {
        // SAFETY: valid, and not used afterwards.
        unsafe { sys::rd_kafka_consumer_group_metadata_destroy(self.0) };
    }
}

/// A list of partitions, with or without offsets.
pub struct Offsets(pub *mut sys::rd_kafka_topic_partition_list_t);

impl Offsets {
    /// An empty list.
    pub fn new() -> Self {
        // SAFETY: takes no pointers.
        Self(unsafe { sys::rd_kafka_topic_partition_list_new(16) })
    }

    fn add(&self, topic: &str, partition: i32) -> Outcome<*mut sys::rd_kafka_topic_partition_t> {
        let topic = CString::new(topic)?;
        // SAFETY: the list is valid; the name is copied.
        Ok(unsafe { sys::rd_kafka_topic_partition_list_add(self.0, topic.as_ptr(), partition) })
    }

    /// What a group has to commit when these records are done: behind the last one of each partition.
    pub fn behind(topic: &str, records: &[Record]) -> Outcome<Self> {
        let offsets = Self::new();
        for (at, record) in records.iter().enumerate() {
            if records[at + 1..].iter().all(|later| later.partition != record.partition) {
                let place = offsets.add(topic, record.partition)?;
                // SAFETY: the element is valid until the list grows.
                unsafe { (*place).offset = record.offset + 1 };
            }
        }
        Ok(offsets)
    }
}

impl Drop for Offsets {
    fn drop(&mut self) {
        // SAFETY: valid, and not used afterwards.
        unsafe { sys::rd_kafka_topic_partition_list_destroy(self.0) };
    }
}

fn taken(what: &str, error: sys::rd_kafka_resp_err_t) -> Outcome<()> {
    if error == NO_ERROR { Ok(()) } else { Err(format!("{what}: {error:?}").into()) }
}
