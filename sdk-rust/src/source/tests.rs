// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The parts of the generation 2 contract that take too long with its real times. What remains is
//! in tests/source.rs.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::SourceBatchResult::{Ack, Nack};
use super::delivery::{Delivery, Next, Policy};
use super::poll_loop::PollTask;
use super::*;
use crate::{Error, ProducedMessages, Schema, get_runtime};

/// Notes the results it is told; fails or panics at the first Nack when it is to.
#[derive(Debug, Default)]
struct Notes {
    results: Mutex<Vec<SourceBatchResult>>,
    fails_at_nack: bool,
}

impl Notes {
    fn results(&self) -> Vec<SourceBatchResult> {
        self.results.lock().unwrap().clone()
    }
}

#[async_trait]
impl Source for Notes {
    async fn open(&mut self) -> Result<(), Error> {
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        Ok(ProducedMessages { schema: Schema::Raw, messages: Vec::new(), state: None })
    }

    async fn on_batch_result(&self, result: SourceBatchResult) -> Result<(), Error> {
        self.results.lock().unwrap().push(result);
        if self.fails_at_nack && result == Nack { Err(Error::InvalidState) } else { Ok(()) }
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

fn apply(delivery: &Delivery, source: &Notes, result: SourceBatchResult) -> Next {
    get_runtime().block_on(delivery.apply(source, result))
}

#[test]
fn pauses_double_from_100_ms_and_the_fifth_nack_in_a_row_ends_the_source() {
    let (delivery, source) = (Delivery::new(1, Policy::DEFAULT), Notes::default());
    for millis in [100, 200, 400, 800] {
        let next = apply(&delivery, &source, Nack);
        assert_eq!(next, Next::PollAfter(Duration::from_millis(millis)));
    }
    assert_eq!(apply(&delivery, &source, Nack), Next::Stop);
}

#[test]
fn the_pause_has_a_ceiling() {
    assert_eq!(Policy::DEFAULT.pause_after(1000), Duration::from_secs(5));
}

#[test]
fn an_ack_ends_a_row_of_nacks() {
    let (delivery, source) = (Delivery::new(1, Policy::DEFAULT), Notes::default());
    for _ in 0..4 {
        apply(&delivery, &source, Nack);
    }
    assert_eq!(apply(&delivery, &source, Ack), Next::Poll);
    assert_eq!(apply(&delivery, &source, Nack), Next::PollAfter(Duration::from_millis(100)));
}

#[test]
fn a_source_that_cannot_apply_a_result_ends() {
    let source = Notes { fails_at_nack: true, ..Notes::default() };
    assert_eq!(apply(&Delivery::new(1, Policy::DEFAULT), &source, Nack), Next::Stop);
}

/// Batch ids that reached the host, of all tests in this process.
static SENT: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());

extern "C" fn accept(id: u32, batch_id: u64, _messages: *const u8, _len: usize) -> i32 {
    SENT.lock().unwrap().push((id, batch_id));
    0
}

fn wait_for_batch(id: u32, batch_id: u64) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !SENT.lock().unwrap().contains(&(id, batch_id)) {
        assert!(std::time::Instant::now() < deadline, "batch {batch_id} did not arrive");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_batch_without_result_is_nacked_in_time_and_its_late_result_refused() {
    let policy = Policy { result_timeout: Duration::from_millis(20), ..Policy::DEFAULT };
    let source = Arc::new(Notes::default());
    let task = PollTask::start(101, source.clone(), Sender::V2(accept), policy);
    wait_for_batch(101, 2);
    assert_eq!(task.complete(source.as_ref(), 1, 0), INVALID);
    task.stop();
    assert_eq!(source.results()[0], Nack);
}

#[test]
fn closing_nacks_the_batch_that_waits_for_its_result() {
    let source = Arc::new(Notes::default());
    let task = PollTask::start(102, source.clone(), Sender::V2(accept), Policy::DEFAULT);
    wait_for_batch(102, 1);
    task.stop();
    assert_eq!(source.results(), [Nack]);
}

#[test]
fn closing_breaks_off_a_pause() {
    let policy = Policy {
        result_timeout: Duration::ZERO,
        backoff: Duration::from_secs(3600),
        max_backoff: Duration::from_secs(3600),
        ..Policy::DEFAULT
    };
    let source = Arc::new(Notes::default());
    let task = PollTask::start(103, source.clone(), Sender::V2(accept), policy);
    wait_for_batch(103, 1);
    task.stop();
    assert_eq!(source.results(), [Nack]);
}
