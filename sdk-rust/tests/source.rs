// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! What a host may rely on with a source that was built with this crate.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use iggy_connector_sdk::mock_host::{FAILED, INVALID, MockSource, OK, wait_for_log};
use iggy_connector_sdk::source::SourceBatchResult::{self, Ack, Nack};
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source,
};
use serde::Deserialize;

/// Produces its own count of polls. What it does beside is ordered by name.
#[derive(Debug)]
struct Counter {
    orders: Orders,
    count: AtomicU64,
    results: Mutex<Vec<SourceBatchResult>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Orders {
    open: String,
    /// At the first poll.
    poll: String,
    result: String,
    close: String,
}

impl Counter {
    fn new(id: u32, orders: Orders, state: Option<ConnectorState>) -> Self {
        let count = state.and_then(|state| state.deserialize("counter", id)).unwrap_or_default();
        Self { orders, count: AtomicU64::new(count), results: Mutex::default() }
    }
}

fn obey(order: &str) -> Result<(), Error> {
    match order {
        "" => Ok(()),
        "fail" => Err(Error::Storage(order.to_owned())),
        panic => panic!("{panic}"),
    }
}

#[async_trait]
impl Source for Counter {
    async fn open(&mut self) -> Result<(), Error> {
        obey(&self.orders.open)
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.orders.poll == "never" {
            std::future::pending::<()>().await;
        }
        obey(if count == 1 { &self.orders.poll } else { "" })?;
        let message = ProducedMessage {
            id: None,
            checksum: None,
            timestamp: None,
            origin_timestamp: None,
            headers: None,
            payload: count.to_string().into_bytes(),
        };
        Ok(ProducedMessages {
            schema: Schema::Text,
            messages: vec![message],
            state: ConnectorState::serialize(&count, "counter", 0),
        })
    }

    async fn on_batch_result(&self, result: SourceBatchResult) -> Result<(), Error> {
        self.results.lock().unwrap().push(result);
        obey(&self.orders.result)
    }

    async fn close(&mut self) -> Result<(), Error> {
        obey(&self.orders.close)?;
        let results = self.results.lock().unwrap();
        tracing::info!("close of {} after {results:?}", self.orders.close);
        Ok(())
    }
}

fn started(config: &str) -> MockSource<Counter> {
    let mut source = MockSource::open(Counter::new, config, None).unwrap();
    assert_eq!(source.start(), OK);
    source
}

fn payload(batch: &ProducedMessages) -> &str {
    std::str::from_utf8(&batch.messages[0].payload).unwrap()
}

/// Long enough for a batch that must not come, short enough to wait for.
const A_WHILE: Duration = Duration::from_millis(50);

#[test]
fn batches_are_numbered_from_1_and_one_is_in_flight() {
    let source = started("{}");
    for id in 1..=3 {
        let batch = source.next_batch();
        assert_eq!((batch.id, payload(&batch.messages)), (id, id.to_string().as_str()));
        assert!(source.batch_within(A_WHILE).is_none(), "a second batch in flight");
        assert_eq!(source.report(id, Ack), OK);
    }
    assert_eq!(source.close(), OK);
}

#[test]
fn a_state_comes_back_to_the_next_instance() {
    let first = started("{}");
    let state = first.next_batch().messages.state.unwrap();
    let mut second = MockSource::open(Counter::new, "{}", Some(&state)).unwrap();
    second.start();
    assert_eq!(payload(&second.next_batch().messages), "2");
}

#[test]
fn a_state_that_cannot_be_read_is_a_fresh_start_with_a_warning() {
    let empty = ConnectorState(Vec::new());
    let mut source = MockSource::open(Counter::new, "{}", Some(&empty)).unwrap();
    source.start();
    assert_eq!(payload(&source.next_batch().messages), "1");
    let warning = wait_for_log("cannot read its state");
    assert_eq!(warning.level, 3);
    // What follows is the plugin's to decide: most fail to open.
    assert!(!warning.message.contains("afresh"), "{}", warning.message);
}

#[test]
fn the_source_polls_on_after_a_nack() {
    let source = started("{}");
    assert_eq!(source.report(source.next_batch().id, Nack), OK);
    assert_eq!(source.next_batch().id, 2);
}

#[test]
fn a_result_of_another_batch_changes_nothing() {
    let source = started("{}");
    let batch = source.next_batch();
    assert_eq!(source.report(batch.id + 1, Ack), INVALID);
    assert_eq!(source.report(batch.id, Ack), OK);
    assert_eq!(source.report(batch.id, Ack), INVALID, "it has had its result");
}

#[test]
fn an_unknown_result_is_a_nack_and_reported() {
    let source = started("{}");
    assert_eq!(source.report_code(source.next_batch().id, 9), INVALID);
    assert_eq!(source.next_batch().id, 2);
    wait_for_log("unknown result 9");
}

#[test]
fn the_fifth_nack_in_a_row_ends_the_source_but_not_the_instance() {
    let source = started("{}");
    for _ in 0..4 {
        assert_eq!(source.report(source.next_batch().id, Nack), OK);
    }
    let last = source.next_batch().id;
    assert_eq!(source.report(last, Nack), INVALID);
    assert!(source.batch_within(A_WHILE).is_none());
    assert_eq!(source.report(last, Ack), INVALID);
    assert_eq!(source.close(), OK);
}

#[test]
fn a_refused_batch_is_a_nack_without_result() {
    let mut source = MockSource::open(Counter::new, "{}", None).unwrap();
    source.answer_next_with(FAILED);
    source.start();
    let (refused, next) = (source.next_batch(), source.next_batch());
    assert_eq!((refused.id, next.id), (1, 2));
    assert_eq!(source.report(refused.id, Ack), INVALID);
    assert_eq!(source.report(next.id, Ack), OK);
}

#[test]
fn a_source_that_fails_at_a_result_ends() {
    for (config, logged) in [
        (r#"{"result": "fail"}"#, "could not apply Ack: Storage error: fail"),
        (r#"{"result": "panic at result"}"#, "panic at result"),
    ] {
        let source = started(config);
        assert_eq!(source.report(source.next_batch().id, Ack), INVALID);
        assert!(source.batch_within(A_WHILE).is_none());
        assert_eq!(source.close(), OK);
        wait_for_log(logged);
    }
}

#[test]
fn polling_goes_on_after_an_error_and_after_a_panic() {
    for poll in ["fail", "panic in poll"] {
        let source = started(&format!(r#"{{"poll": "{poll}"}}"#));
        let batch = source.next_batch();
        assert_eq!((batch.id, payload(&batch.messages)), (1, "2"), "{poll}");
    }
    let record = wait_for_log("panic in poll");
    assert!(record.message.contains("tests/source.rs:"), "{record:?}");
}

#[test]
fn a_panic_in_open_or_close_becomes_a_code() {
    let opened = MockSource::open(Counter::new, r#"{"open": "panic in open"}"#, None);
    assert_eq!(opened.err(), Some(INVALID));
    let source = started(r#"{"close": "panic in close"}"#);
    assert_eq!(source.close(), INVALID);
    wait_for_log("panic in open");
    wait_for_log("panic in close");
}

#[test]
fn a_source_that_failed_to_open_cannot_be_started() {
    let failed = MockSource::open(Counter::new, r#"{"open": "fail"}"#, None);
    assert_eq!(failed.err(), Some(FAILED));
    let refused = MockSource::open(Counter::new, r#"{"open": 1}"#, None);
    assert_eq!(refused.err(), Some(INVALID));
}

#[test]
fn a_source_is_started_once() {
    let mut source = started("{}");
    assert_eq!(source.start(), INVALID);
    assert_eq!(source.start_v1(), INVALID);
    source.close();
    assert_eq!(source.start(), INVALID);
}

#[test]
fn closing_breaks_off_a_poll() {
    let source = started(r#"{"poll": "never"}"#);
    let started = Instant::now();
    assert_eq!(source.close(), OK);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn no_batch_comes_after_close() {
    let source = started("{}");
    source.next_batch();
    assert_eq!(source.close(), OK);
    assert!(source.batch_within(A_WHILE).is_none());
    assert_eq!(source.report(1, Ack), INVALID);
    assert_eq!(source.close(), INVALID);
}

#[test]
fn in_generation_1_each_batch_handed_over_counts_as_acknowledged() {
    let mut source = MockSource::open(Counter::new, r#"{"result": "fail"}"#, None).unwrap();
    assert_eq!(source.start_v1(), OK);
    source.next_batch();
    assert!(source.batch_within(A_WHILE).is_none(), "it failed to apply the Ack, so it ended");

    let mut source = MockSource::open(Counter::new, "{}", None).unwrap();
    assert_eq!(source.start_v1(), OK);
    for count in ["1", "2", "3"] {
        assert_eq!(payload(&source.next_batch().messages), count);
    }
    assert_eq!(source.close(), OK);
}
