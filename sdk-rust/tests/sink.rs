// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! What a host may rely on with a sink that was built with this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use iggy_connector_sdk::mock_host::{FAILED, INVALID, MockSink, OK, wait_for_log};
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, RawMessage, RawMessages, Schema, Sink,
    TopicMetadata,
};
use serde::Deserialize;
use tokio::sync::{Barrier, mpsc};

/// What the sink does at each call, by name.
#[derive(Debug, Deserialize)]
struct Orders {
    #[serde(default)]
    new: String,
    #[serde(default)]
    open: String,
    #[serde(default)]
    consume: String,
    #[serde(default)]
    close: String,
}

#[derive(Debug)]
struct Obedient {
    orders: Orders,
    consumed: mpsc::UnboundedSender<(TopicMetadata, MessagesMetadata, Vec<ConsumedMessage>)>,
    calls: Arc<AtomicUsize>,
    /// Two calls that wait for each other.
    meeting: Barrier,
}

type Consumed = mpsc::UnboundedReceiver<(TopicMetadata, MessagesMetadata, Vec<ConsumedMessage>)>;

fn obey(order: &str) -> Result<(), Error> {
    match order {
        "" => Ok(()),
        "fail" => Err(Error::CannotStoreData(order.to_owned())),
        panic => panic!("{panic}"),
    }
}

#[async_trait]
impl Sink for Obedient {
    async fn open(&mut self) -> Result<(), Error> {
        obey(&self.orders.open)
    }

    async fn consume(
        &self,
        topic: &TopicMetadata,
        metadata: MessagesMetadata,
        messages: Vec<ConsumedMessage>,
    ) -> Result<(), Error> {
        if self.orders.consume == "meet" {
            self.meeting.wait().await;
            return Ok(());
        }
        let first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        obey(if first { &self.orders.consume } else { "" })?;
        let topic = TopicMetadata { stream: topic.stream.clone(), topic: topic.topic.clone() };
        self.consumed.send((topic, metadata, messages)).unwrap();
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        obey(&self.orders.close)
    }
}

fn open(config: &str) -> Result<(MockSink<Obedient>, Consumed), i32> {
    let (sender, consumed) = mpsc::unbounded_channel();
    let new = |_id: u32, orders: Orders| {
        obey(&orders.new).unwrap();
        Obedient { orders, consumed: sender, calls: Arc::default(), meeting: Barrier::new(2) }
    };
    MockSink::open(new, config).map(|sink| (sink, consumed))
}

fn raw(offset: u64, headers: &[u8], payload: &[u8]) -> RawMessage {
    RawMessage {
        id: 7,
        offset,
        checksum: 8,
        timestamp: 9,
        origin_timestamp: 10,
        headers: headers.to_vec(),
        payload: payload.to_vec(),
    }
}

#[test]
fn a_batch_reaches_the_sink_as_the_host_gave_it() {
    let (sink, mut consumed) = open("{}").unwrap();
    assert_eq!(sink.consume("stream", "topic", Schema::Json, &[br#"{"a":1}"#, b"2"]), OK);

    let (topic, metadata, messages) = consumed.try_recv().unwrap();
    assert_eq!((topic.stream.as_str(), topic.topic.as_str()), ("stream", "topic"));
    assert_eq!((metadata.partition_id, metadata.current_offset), (1, 1));
    let payloads: Vec<_> = messages.iter().map(|m| m.payload.try_to_bytes().unwrap()).collect();
    assert_eq!(payloads, [br#"{"a":1}"#.to_vec(), b"2".to_vec()]);
    assert_eq!(sink.close(), OK);
}

#[test]
fn the_schema_of_the_metadata_counts_not_that_of_the_messages() {
    let (sink, mut consumed) = open("{}").unwrap();
    let topic = TopicMetadata { stream: "s".to_owned(), topic: "t".to_owned() };
    let metadata = MessagesMetadata { partition_id: 0, current_offset: 0, schema: Schema::Text };
    let messages = RawMessages { schema: Schema::Json, messages: vec![raw(0, &[], b"{not json")] };
    assert_eq!(sink.consume_batch(&topic, &metadata, &messages), OK);

    let (_, _, messages) = consumed.try_recv().unwrap();
    assert!(matches!(&messages[0].payload, Payload::Text(text) if text == "{not json"));
}

#[test]
fn a_message_that_cannot_be_read_is_skipped_with_a_log_record() {
    let (sink, mut consumed) = open("{}").unwrap();
    let topic = TopicMetadata { stream: "s".to_owned(), topic: "t".to_owned() };
    let metadata = MessagesMetadata { partition_id: 0, current_offset: 0, schema: Schema::Json };
    let broken = [raw(4711, &[], b"{"), raw(4712, b"\xff", b"{}"), raw(4713, b"\x00", b"{}")];
    let messages = RawMessages { schema: Schema::Json, messages: broken.into() };
    assert_eq!(sink.consume_batch(&topic, &metadata, &messages), OK);

    let (_, _, messages) = consumed.try_recv().unwrap();
    let offsets: Vec<_> = messages.iter().map(|message| message.offset).collect();
    assert_eq!(offsets, [4713]);
    assert!(messages[0].headers.as_ref().is_some_and(|headers| headers.is_empty()));
    wait_for_log("offset 4711");
    wait_for_log("offset 4712");
}

#[test]
fn bytes_that_are_no_batch_are_refused() {
    let (sink, mut consumed) = open("{}").unwrap();
    let (topic, metadata, messages) = (b"\x01s\x01t", b"\x00\x00\x00", b"\x00\x00");
    assert_eq!(sink.consume_bytes(&topic[..3], metadata, messages), INVALID);
    assert_eq!(sink.consume_bytes(topic, &metadata[..2], messages), INVALID);
    assert_eq!(sink.consume_bytes(topic, metadata, &messages[..1]), INVALID);
    assert_eq!(sink.consume_bytes(topic, metadata, b""), INVALID);
    assert!(consumed.try_recv().is_err());
    assert_eq!(sink.consume_bytes(topic, metadata, messages), OK);
}

#[test]
fn a_configuration_that_cannot_be_read_is_refused_with_the_reason_in_the_log() {
    for config in ["", "{", "null", r#"{"open": 1234567}"#] {
        assert_eq!(open(config).err(), Some(INVALID), "{config:?}");
    }
    wait_for_log("1234567");
}

#[test]
fn a_sink_that_fails_to_open_says_so() {
    assert_eq!(open(r#"{"open": "fail"}"#).err(), Some(FAILED));
    wait_for_log("cannot be opened: Cannot store data: fail");
}

#[test]
fn a_failed_batch_has_its_code_and_the_next_one_goes_on() {
    let (sink, _consumed) = open(r#"{"consume": "fail"}"#).unwrap();
    assert_eq!(sink.consume("s", "t", Schema::Raw, &[b"x"]), FAILED);
    assert_eq!(sink.consume("s", "t", Schema::Raw, &[b"x"]), OK);
}

#[test]
fn a_panic_becomes_a_code_and_a_log_record_with_its_place() {
    assert_eq!(open(r#"{"new": "panic in new"}"#).err(), Some(INVALID));
    assert_eq!(open(r#"{"open": "panic in open"}"#).err(), Some(INVALID));

    let (sink, _consumed) = open(r#"{"consume": "panic in consume"}"#).unwrap();
    assert_eq!(sink.consume("s", "t", Schema::Raw, &[b"x"]), INVALID);
    assert_eq!(sink.consume("s", "t", Schema::Raw, &[b"x"]), OK, "the sink is still there");

    let (sink, _consumed) = open(r#"{"close": "panic in close"}"#).unwrap();
    assert_eq!(sink.close(), INVALID);

    for panic in ["panic in new", "panic in open", "panic in consume", "panic in close"] {
        let record = wait_for_log(panic);
        assert!(record.message.contains("tests/sink.rs:"), "{record:?}");
        assert_eq!(record.level, 4);
    }
}

#[test]
fn troubles_at_close_are_logged_and_the_sink_is_gone() {
    let (sink, _consumed) = open(r#"{"close": "fail"}"#).unwrap();
    assert_eq!(sink.close(), OK);
    assert_eq!(sink.close(), INVALID);
    assert_eq!(sink.consume("s", "t", Schema::Raw, &[b"x"]), INVALID);
    wait_for_log("troubles at close");
}

#[test]
fn batches_are_consumed_side_by_side() {
    let (sink, _consumed) = open(r#"{"consume": "meet"}"#).unwrap();
    let consume = || sink.consume("s", "t", Schema::Raw, &[b"x"]);
    std::thread::scope(|scope| {
        let other = scope.spawn(consume);
        assert_eq!(consume(), OK);
        assert_eq!(other.join().unwrap(), OK);
    });
}
