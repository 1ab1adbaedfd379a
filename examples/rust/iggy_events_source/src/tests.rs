// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

use iggy_connector_sdk::mock_host::{FAILED, MockSource};

use super::*;

fn stream(created_at: u64) -> Entity {
    Entity::Stream { stream: "shop".into(), created_at }
}

fn topic(name: &str) -> Entity {
    Entity::Topic { stream: "shop".into(), topic: name.into(), created_at: 1 }
}

fn names(old: &[Entity], new: &[Entity]) -> Vec<String> {
    let snapshot = |entities: &[Entity]| entities.iter().cloned().collect::<Snapshot>();
    let events = events(&snapshot(old), &snapshot(new), 7);
    events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_new_was_created_and_what_is_missing_was_deleted() {
    let shop = [topic("orders"), stream(1)];
    assert_eq!(names(&shop, &shop), [""; 0]);
    assert_eq!(names(&[], &shop), ["stream_created", "topic_created"]);
    assert_eq!(names(&shop, &[]), ["topic_deleted", "stream_deleted"]);
    assert_eq!(names(&shop[..1], &[topic("carts")]), ["topic_deleted", "topic_created"]);
}

#[test]
fn a_thing_made_anew_under_its_old_name_is_another() {
    assert_eq!(names(&[stream(1)], &[stream(2)]), ["stream_deleted", "stream_created"]);
}

#[test]
fn an_event_names_its_place() {
    let (stream, topic) = ("shop".to_owned(), "orders".to_owned());
    let user = Entity::User { user: "ann".into(), created_at: 1 };
    let partition =
        Entity::Partition { stream: stream.clone(), topic: topic.clone(), partition: 3 };
    let group = Entity::ConsumerGroup { stream, topic, group: "billing".into() };
    assert_eq!(
        [user, partition, group].map(|entity| entity.event("created", 7)),
        [
            json!({ "event": "user_created", "at": 7, "user": "ann" }),
            json!({ "event": "partition_created", "at": 7, "stream": "shop", "topic": "orders",
                    "partition": 3 }),
            json!({ "event": "consumer_group_created", "at": 7, "stream": "shop",
                    "topic": "orders", "group": "billing" }),
        ]
    );
}

#[test]
fn the_last_acknowledged_snapshot_is_the_state() {
    let snapshot = Snapshot::from([stream(1), topic("orders")]);
    let state = ConnectorState::serialize(&snapshot, NAME, 1);
    let source = IggyEventsSource::new(1, None, state);
    assert_eq!(source.progress.lock().unwrap().acknowledged, Ok(Some(snapshot)));
}

#[test]
fn a_server_that_cannot_be_addressed_fails_the_open() {
    let opened = MockSource::open(IggyEventsSource::new, r#"{"server": "nowhere"}"#, None);
    assert_eq!(opened.err(), Some(FAILED));
}
