// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! A host of generation 1 makes a send callback wait when its queue is full. Alone in its process,
//! for the worker threads are counted when the runtime starts.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use iggy_connector_sdk::connector_macro_support::Instances;
use iggy_connector_sdk::source::SourceContainer;
use iggy_connector_sdk::{ConnectorState, Error, ProducedMessages, Schema, Source};

#[derive(Debug)]
struct Eager;

impl Eager {
    fn new(_id: u32, _config: (), _state: Option<ConnectorState>) -> Self {
        Self
    }
}

#[async_trait]
impl Source for Eager {
    async fn open(&mut self) -> Result<(), Error> {
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        Ok(ProducedMessages { schema: Schema::Raw, messages: Vec::new(), state: None })
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// How many callbacks wait, and whether they may go on.
#[derive(Default)]
struct Queue {
    waiting: usize,
    has_room: bool,
}

static QUEUE: (Mutex<Queue>, Condvar) =
    (Mutex::new(Queue { waiting: 0, has_room: false }), Condvar::new());

extern "C" fn wait_for_room(_id: u32, _messages: *const u8, _messages_len: usize) {
    let mut queue = QUEUE.0.lock().unwrap();
    queue.waiting += 1;
    QUEUE.1.notify_all();
    drop(QUEUE.1.wait_while(queue, |queue| !queue.has_room).unwrap());
}

extern "C" fn take(_id: u32, _messages: *const u8, _messages_len: usize) {}

extern "C" fn no_log(_: u8, _: *const u8, _: usize, _: *const u8, _: usize) {}

#[test]
fn callbacks_that_wait_do_not_hold_up_another_instance_on_a_single_worker() {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("TOKIO_WORKER_THREADS", "1") };
    let sources = Instances::<SourceContainer<Eager>>::new();
    let open = |id| {
        let (config, none) = (b"null", std::ptr::null());
        // SAFETY: the pointer is that of `config`.
        unsafe { sources.open(id, config.as_ptr(), config.len(), none, 0, no_log, Eager::new) }
    };
    assert_eq!([1, 2, 3].map(open), [0; 3]);

    // given two callbacks that wait
    assert_eq!([1, 2].map(|id| sources.handle(id, wait_for_room)), [0; 2]);
    let queue = QUEUE.0.lock().unwrap();
    let patience = Duration::from_secs(30);
    let two_wait = QUEUE.1.wait_timeout_while(queue, patience, |queue| queue.waiting < 2).unwrap();
    assert!(!two_wait.1.timed_out(), "the second callback had no thread");
    drop(two_wait);

    // when, then
    assert_eq!(sources.handle(3, take), 0);
    assert_eq!(sources.close(3), 0);

    QUEUE.0.lock().unwrap().has_room = true;
    QUEUE.1.notify_all();
    assert_eq!([1, 2].map(|id| sources.close(id)), [0; 2]);
}
