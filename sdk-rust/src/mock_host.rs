// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! A host for the tests of a plugin: no runtime, no server, no shared library.
//!
//! It drives the same code that the exported functions do, with the same bytes, so that a test
//! sees what a host would see: codes, batches, log records.
//!
//! ```
//! use iggy_connector_sdk::mock_host::{MockSink, MockSource, OK};
//! use iggy_connector_sdk::source::SourceBatchResult::{Ack, Nack};
//! # use async_trait::async_trait;
//! # use iggy_connector_sdk::*;
//! # #[derive(Debug)] struct Ticks;
//! # impl Ticks { fn new(_: u32, _: serde_json::Value, _: Option<ConnectorState>) -> Self { Ticks } }
//! # #[async_trait] impl Source for Ticks {
//! #     async fn open(&mut self) -> Result<(), Error> { Ok(()) }
//! #     async fn poll(&self) -> Result<ProducedMessages, Error> {
//! #         let message = ProducedMessage { id: None, checksum: None, timestamp: None,
//! #             origin_timestamp: None, headers: None, payload: b"tick".to_vec() };
//! #         Ok(ProducedMessages { schema: Schema::Text, messages: vec![message], state: None })
//! #     }
//! #     async fn close(&mut self) -> Result<(), Error> { Ok(()) }
//! # }
//!
//! let mut source = MockSource::open(Ticks::new, r#"{"interval": "1s"}"#, None).unwrap();
//! source.start();
//! let batch = source.next_batch();
//! assert_eq!(batch.messages.messages[0].payload, b"tick");
//! assert_eq!(source.report(batch.id, Nack), OK);
//! assert_eq!(source.next_batch().id, 2);
//! assert_eq!(source.close(), OK);
//! ```

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

pub use crate::edge::{FAILED, INVALID, OK};
use crate::instances::Instances;
use crate::sink::SinkContainer;
use crate::source::{SourceBatchResult, SourceContainer};
use crate::{
    ConnectorState, MessagesMetadata, ProducedMessages, RawMessage, RawMessages, Schema, Sink,
    Source, TopicMetadata,
};

/// How long [`MockSource::next_batch`] and [`wait_for_log`] wait before they fail the test.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Ids are never used twice in a process.
static NEXT_ID: AtomicU32 = AtomicU32::new(1);

fn next_id() -> u32 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- Log ----------------------------------------------------------------------------------------

/// A log record, as the host got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// 0 trace, 1 debug, 2 info, 3 warn, 4 error.
    pub level: u8,
    /// Module that it comes from.
    pub target: String,
    /// Its text.
    pub message: String,
}

static LOG: Mutex<Vec<LogRecord>> = Mutex::new(Vec::new());

extern "C" fn record(level: u8, target: *const u8, target_len: usize, text: *const u8, len: usize) {
    // SAFETY: the SDK passes strings that outlive the call.
    let text_of = |pointer, length| unsafe {
        String::from_utf8_lossy(crate::edge::bytes(pointer, length)).into_owned()
    };
    let record =
        LogRecord { level, target: text_of(target, target_len), message: text_of(text, len) };
    lock(&LOG).push(record);
}

/// The first record that contains `text`, of all instances in this process.
pub fn find_log(text: &str) -> Option<LogRecord> {
    lock(&LOG).iter().find(|record| record.message.contains(text)).cloned()
}

/// As [`find_log`], for a record that is yet to come.
///
/// # Panics
///
/// When none comes in time.
pub fn wait_for_log(text: &str) -> LogRecord {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(record) = find_log(text) {
            return record;
        }
        assert!(Instant::now() < deadline, "no log record contains {text:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

// ---- Sinks --------------------------------------------------------------------------------------

/// A host with one sink.
pub struct MockSink<T: Sink + Debug> {
    id: u32,
    sinks: Instances<SinkContainer<T>>,
}

impl<T: Sink + Debug> MockSink<T> {
    /// Opens a sink with its constructor and the JSON text of its configuration.
    ///
    /// # Errors
    ///
    /// The code of the failed open; the sink has been closed.
    pub fn open<F, C>(new: F, config: &str) -> Result<Self, i32>
    where
        F: FnOnce(u32, C) -> T,
        C: DeserializeOwned,
    {
        let host = Self { id: next_id(), sinks: Instances::new() };
        // SAFETY: the pointer is that of `config`.
        match unsafe { host.sinks.open(host.id, config.as_ptr(), config.len(), record, new) } {
            OK => Ok(host),
            code => Err(code),
        }
    }

    /// Hands over payloads as one batch of `stream/topic`, partition 1, with offsets from 0.
    pub fn consume(&self, stream: &str, topic: &str, schema: Schema, payloads: &[&[u8]]) -> i32 {
        let messages = payloads.iter().zip(0..).map(|(payload, offset)| RawMessage {
            id: u128::from(offset) + 1,
            offset,
            checksum: 0,
            timestamp: 0,
            origin_timestamp: 0,
            headers: Vec::new(),
            payload: payload.to_vec(),
        });
        self.consume_batch(
            &TopicMetadata { stream: stream.to_owned(), topic: topic.to_owned() },
            &MessagesMetadata {
                partition_id: 1,
                current_offset: (payloads.len() as u64).saturating_sub(1),
                schema,
            },
            &RawMessages { schema, messages: messages.collect() },
        )
    }

    /// Hands over a batch of which every part is chosen.
    pub fn consume_batch(
        &self,
        topic: &TopicMetadata,
        metadata: &MessagesMetadata,
        messages: &RawMessages,
    ) -> i32 {
        self.consume_bytes(&encode(topic), &encode(metadata), &encode(messages))
    }

    /// Hands over bytes that need not be a batch.
    pub fn consume_bytes(&self, topic: &[u8], metadata: &[u8], messages: &[u8]) -> i32 {
        // SAFETY: the pointers are those of the three slices.
        unsafe {
            self.sinks.consume(
                self.id,
                topic.as_ptr(),
                topic.len(),
                metadata.as_ptr(),
                metadata.len(),
                messages.as_ptr(),
                messages.len(),
            )
        }
    }

    /// Closes the sink; afterwards every call is [`INVALID`].
    pub fn close(&self) -> i32 {
        self.sinks.close(self.id)
    }
}

impl<T: Sink + Debug> Drop for MockSink<T> {
    fn drop(&mut self) {
        self.close();
    }
}

fn encode<V: serde::Serialize>(value: &V) -> Vec<u8> {
    postcard::to_stdvec(value).expect("the structures of the border can always be encoded")
}

// ---- Sources ------------------------------------------------------------------------------------

/// A batch that a source handed over.
#[derive(Debug)]
pub struct Batch {
    /// The batch id; 0 in generation 1, which has none.
    pub id: u64,
    /// What the source produced.
    pub messages: ProducedMessages,
}

/// Where the callbacks, which know nothing but an id, find their host.
static INBOXES: Mutex<BTreeMap<u32, Inbox>> = Mutex::new(BTreeMap::new());

#[derive(Clone)]
struct Inbox {
    batches: mpsc::Sender<Batch>,
    answer: Arc<AtomicI32>,
}

extern "C" fn receive_v1(id: u32, messages: *const u8, messages_len: usize) {
    receive_v2(id, 0, messages, messages_len);
}

extern "C" fn receive_v2(id: u32, batch_id: u64, messages: *const u8, messages_len: usize) -> i32 {
    // SAFETY: the SDK passes the bytes of a buffer that outlives the call.
    let bytes = unsafe { crate::edge::bytes(messages, messages_len) };
    let (Ok(messages), Some(inbox)) =
        (postcard::from_bytes(bytes), lock(&INBOXES).get(&id).cloned())
    else {
        return INVALID;
    };
    let answer = inbox.answer.swap(OK, Ordering::AcqRel);
    match inbox.batches.send(Batch { id: batch_id, messages }) {
        Ok(()) => answer,
        Err(_) => INVALID,
    }
}

/// A host with one source.
pub struct MockSource<T: Source + Debug + 'static> {
    id: u32,
    sources: Instances<SourceContainer<T>>,
    batches: mpsc::Receiver<Batch>,
    answer: Arc<AtomicI32>,
}

impl<T: Source + Debug + 'static> MockSource<T> {
    /// Opens a source with its constructor, the JSON text of its configuration and the state that
    /// an earlier batch carried.
    ///
    /// # Errors
    ///
    /// The code of the failed open; the source has been closed.
    pub fn open<F, C>(new: F, config: &str, state: Option<&ConnectorState>) -> Result<Self, i32>
    where
        F: FnOnce(u32, C, Option<ConnectorState>) -> T,
        C: DeserializeOwned,
    {
        let (sender, batches) = mpsc::channel();
        let answer = Arc::new(AtomicI32::new(OK));
        let host =
            Self { id: next_id(), sources: Instances::new(), batches, answer: answer.clone() };
        lock(&INBOXES).insert(host.id, Inbox { batches: sender, answer });
        let (pointer, length) =
            state.map_or((std::ptr::null(), 0), |state| (state.0.as_ptr(), state.0.len()));
        // SAFETY: the pointers are those of `config` and `state`.
        let code = unsafe {
            let (config, config_len) = (config.as_ptr(), config.len());
            host.sources.open(host.id, config, config_len, pointer, length, record, new)
        };
        match code {
            OK => Ok(host),
            code => Err(code),
        }
    }

    /// Starts the source as a host of generation 2 does.
    pub fn start(&mut self) -> i32 {
        self.sources.handle_v2(self.id, receive_v2)
    }

    /// Starts the source as a host of generation 1 does: there are no results.
    pub fn start_v1(&mut self) -> i32 {
        self.sources.handle(self.id, receive_v1)
    }

    /// What the host answers to the next batch; other than [`OK`] it refuses it.
    pub fn answer_next_with(&self, code: i32) {
        self.answer.store(code, Ordering::Release);
    }

    /// Waits for the next batch.
    ///
    /// # Panics
    ///
    /// When none comes in time.
    pub fn next_batch(&self) -> Batch {
        self.batch_within(PATIENCE).expect("the source should have produced a batch")
    }

    /// Waits for the next batch that long.
    pub fn batch_within(&self, time: Duration) -> Option<Batch> {
        self.batches.recv_timeout(time).ok()
    }

    /// Reports the result of a batch.
    pub fn report(&self, batch_id: u64, result: SourceBatchResult) -> i32 {
        self.report_code(batch_id, result as u8)
    }

    /// Reports a result that need not be one.
    pub fn report_code(&self, batch_id: u64, code: u8) -> i32 {
        self.sources.batch_result(self.id, batch_id, code)
    }

    /// Closes the source; afterwards every call is [`INVALID`].
    pub fn close(&self) -> i32 {
        let code = self.sources.close(self.id);
        lock(&INBOXES).remove(&self.id);
        code
    }
}

impl<T: Source + Debug + 'static> Drop for MockSource<T> {
    fn drop(&mut self) {
        self.close();
    }
}
