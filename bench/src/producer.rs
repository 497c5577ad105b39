//! librdkafka as a C program uses it: one handle, a delivery callback, nothing in between.
//!
//! The callback matters: without one, librdkafka's flush looks for the end in steps of 10 ms, and a commit contains a
//! flush.

use std::{
    error::Error,
    ffi::{CStr, CString, c_char, c_void},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rdkafka_sys as sys;

use crate::consumer::{Member, Offsets};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long librdkafka may take for anything.
pub const PATIENCE_MS: i32 = 30_000;
/// Sends between two looks at the delivery reports.
const SENDS_PER_POLL: u64 = 5_000;

#[derive(Default)]
struct Reports {
    delivered: AtomicU64,
    failed: AtomicU64,
}

/// One producer.
pub struct Producer {
    handle: *mut sys::rd_kafka_t,
    reports: Box<Reports>,
    sent: u64,
}

// SAFETY: librdkafka's handles may be used from any thread.
unsafe impl Send for Producer {}

extern "C" fn delivered(
    _: *mut sys::rd_kafka_t,
    message: *const sys::rd_kafka_message_t,
    opaque: *mut c_void,
) {
    // SAFETY: librdkafka passes a valid message and the opaque of the configuration, which outlives the handle.
    let (reports, message) = unsafe { (&*opaque.cast::<Reports>(), &*message) };
    let counter = match message.err {
        sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => &reports.delivered,
        _ => &reports.failed,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn no_log(_: *const sys::rd_kafka_t, _: i32, _: *const c_char, _: *const c_char) {}

/// A configuration with these settings, silent.
pub fn configure(settings: &[(&str, &str)]) -> Outcome<*mut sys::rd_kafka_conf_t> {
    let mut said = [0 as c_char; 512];
    // SAFETY: the strings and the buffer live through each call.
    unsafe {
        let configuration = sys::rd_kafka_conf_new();
        for (key, value) in settings {
            let (name, text) = (CString::new(*key)?, CString::new(*value)?);
            let set = sys::rd_kafka_conf_set(
                configuration,
                name.as_ptr(),
                text.as_ptr(),
                said.as_mut_ptr(),
                said.len(),
            );
            if set != sys::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK {
                return Err(format!("{key}={value}: {}", text_of(said.as_ptr())).into());
            }
        }
        sys::rd_kafka_conf_set_log_cb(configuration, Some(no_log));
        Ok(configuration)
    }
}

/// A handle of that kind, which takes the configuration over.
pub fn open(
    kind: sys::rd_kafka_type_t,
    configuration: *mut sys::rd_kafka_conf_t,
) -> Outcome<*mut sys::rd_kafka_t> {
    let mut said = [0 as c_char; 512];
    // SAFETY: the configuration is valid and nobody else's, the buffer lives through the call.
    let handle = unsafe { sys::rd_kafka_new(kind, configuration, said.as_mut_ptr(), said.len()) };
    if handle.is_null() { Err(text_of(said.as_ptr()).into()) } else { Ok(handle) }
}

impl Producer {
    /// A producer with these settings.
    pub fn new(settings: &[(&str, &str)]) -> Outcome<Self> {
        let reports = Box::<Reports>::default();
        let configuration = configure(settings)?;
        // SAFETY: the configuration is valid; the reports live as long as the handle.
        unsafe {
            sys::rd_kafka_conf_set_dr_msg_cb(configuration, Some(delivered));
            sys::rd_kafka_conf_set_opaque(configuration, ptr::from_ref(&*reports).cast_mut().cast());
        }
        let handle = open(sys::rd_kafka_type_t::RD_KAFKA_PRODUCER, configuration)?;
        Ok(Self { handle, reports, sent: 0 })
    }

    /// The topic's handle.
    pub fn topic(&self, name: &str) -> Outcome<Topic> {
        let name = CString::new(name)?;
        // SAFETY: the handle is valid, the name lives through the call.
        let handle = unsafe { sys::rd_kafka_topic_new(self.handle, name.as_ptr(), ptr::null_mut()) };
        if handle.is_null() { Err("no topic handle".into()) } else { Ok(Topic(handle)) }
    }

    /// Waits until the library is connected and knows the topic.
    pub fn connect(&self, topic: &Topic) -> Outcome<()> {
        let mut found: *const sys::rd_kafka_metadata_t = ptr::null();
        // SAFETY: the handles are valid; what was found is destroyed once and not looked at.
        let error = unsafe {
            let error = sys::rd_kafka_metadata(self.handle, 0, topic.0, &raw mut found, PATIENCE_MS);
            if !found.is_null() {
                sys::rd_kafka_metadata_destroy(found);
            }
            error
        };
        match error {
            sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            error => Err(format!("metadata: {error:?}").into()),
        }
    }

    /// Queues a record; waits while the queue is full. `partition` -1 lets the library choose.
    pub fn send(&mut self, topic: &Topic, partition: i32, value: &[u8]) -> Outcome<()> {
        loop {
            // SAFETY: both handles are valid; the value is copied by the call.
            let code = unsafe {
                sys::rd_kafka_produce(
                    topic.0,
                    partition,
                    sys::RD_KAFKA_MSG_F_COPY,
                    value.as_ptr().cast_mut().cast(),
                    value.len(),
                    ptr::null(),
                    0,
                    ptr::null_mut(),
                )
            };
            if code == 0 {
                break;
            }
            // SAFETY: reads this thread's last error.
            let error = unsafe { sys::rd_kafka_last_error() };
            if error != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__QUEUE_FULL {
                return Err(format!("send: {error:?}").into());
            }
            self.poll(1);
        }
        self.sent += 1;
        if self.sent.is_multiple_of(SENDS_PER_POLL) {
            self.poll(0);
        }
        Ok(())
    }

    fn poll(&self, timeout_ms: i32) {
        // SAFETY: the handle is valid.
        unsafe { sys::rd_kafka_poll(self.handle, timeout_ms) };
    }

    /// Waits until everything is acknowledged; an error if a record failed.
    pub fn flush(&self) -> Outcome<()> {
        // SAFETY: the handle is valid.
        let error = unsafe { sys::rd_kafka_flush(self.handle, PATIENCE_MS) };
        if error != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Err(format!("flush: {error:?}").into());
        }
        match self.reports.failed.load(Ordering::Relaxed) {
            0 if self.reports.delivered.load(Ordering::Relaxed) == self.sent => Ok(()),
            0 => Err("records without a delivery report".into()),
            failed => Err(format!("{failed} records were not delivered").into()),
        }
    }

    /// Takes the transactional id.
    pub fn init_transactions(&self) -> Outcome<()> {
        // SAFETY: the handle is valid.
        checked(unsafe { sys::rd_kafka_init_transactions(self.handle, PATIENCE_MS) })
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Outcome<()> {
        // SAFETY: the handle is valid.
        checked(unsafe { sys::rd_kafka_begin_transaction(self.handle) })
    }

    /// Sends offsets as part of the transaction, in the name of the group's member.
    pub fn send_offsets(&self, offsets: &Offsets, member: &Member) -> Outcome<()> {
        // SAFETY: all three handles are valid.
        checked(unsafe {
            sys::rd_kafka_send_offsets_to_transaction(self.handle, offsets.0, member.0, PATIENCE_MS)
        })
    }

    /// Commits; how long that took.
    pub fn commit(&self) -> Outcome<Duration> {
        let asked = Instant::now();
        // SAFETY: the handle is valid.
        checked(unsafe { sys::rd_kafka_commit_transaction(self.handle, PATIENCE_MS) })?;
        Ok(asked.elapsed())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // SAFETY: the handle is valid and not used afterwards. What is still queued is dropped.
        unsafe {
            sys::rd_kafka_purge(self.handle, 3);
            sys::rd_kafka_destroy(self.handle);
        }
    }
}

/// A topic's handle; must go before its producer.
pub struct Topic(*mut sys::rd_kafka_topic_t);

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: the handle is valid and not used afterwards.
        unsafe { sys::rd_kafka_topic_destroy(self.0) };
    }
}

fn checked(error: *mut sys::rd_kafka_error_t) -> Outcome<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null error is valid until destroyed.
    unsafe {
        let text = text_of(sys::rd_kafka_error_string(error));
        sys::rd_kafka_error_destroy(error);
        Err(text.into())
    }
}

fn text_of(text: *const c_char) -> String {
    // SAFETY: librdkafka's texts end with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
