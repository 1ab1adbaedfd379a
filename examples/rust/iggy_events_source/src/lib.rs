// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Reports what is created and deleted in an Iggy server, as JSON such as
//! `{"event":"topic_created","at":1764423000000000,"stream":"shop","topic":"orders"}`.
//!
//! | Key of `plugin_config` | Default | Meaning |
//! |---|---|---|
//! | `server` | `iggy://iggy:iggy@127.0.0.1:8090` | which server, and as whom |
//! | `interval` | `5s` | pause between two looks |
//!
//! Two snapshots are compared: what is new was created, what is missing was deleted. What comes
//! and goes between two looks is not seen; what changes while the connector does not run is, for
//! the last snapshot is its state. At the very first look nothing is reported.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use iggy::prelude::*;
use iggy_connector_sdk::retry::parse_duration;
use iggy_connector_sdk::source::SourceBatchResult;
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source, source_connector,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

source_connector!(IggyEventsSource);

const NAME: &str = "iggy_events_source";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    server: Option<String>,
    interval: Option<String>,
}

/// Something that can be created and deleted. The time of creation tells a new thing from an old
/// one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Entity {
    User { user: String, created_at: u64 },
    Stream { stream: String, created_at: u64 },
    Topic { stream: String, topic: String, created_at: u64 },
    Partition { stream: String, topic: String, partition: u32 },
    ConsumerGroup { stream: String, topic: String, group: String },
}

type Snapshot = BTreeSet<Entity>;

impl Entity {
    fn event(&self, change: &str, at: u64) -> serde_json::Value {
        let (kind, mut event) = match self {
            Entity::User { user, .. } => ("user", json!({ "user": user })),
            Entity::Stream { stream, .. } => ("stream", json!({ "stream": stream })),
            Entity::Topic { stream, topic, .. } => {
                ("topic", json!({ "stream": stream, "topic": topic }))
            }
            Entity::Partition { stream, topic, partition } => {
                ("partition", json!({ "stream": stream, "topic": topic, "partition": partition }))
            }
            Entity::ConsumerGroup { stream, topic, group } => {
                ("consumer_group", json!({ "stream": stream, "topic": topic, "group": group }))
            }
        };
        event["event"] = format!("{kind}_{change}").into();
        event["at"] = at.into();
        event
    }
}

/// Streams come before their topics when they are created, and after them when they are deleted.
fn events(old: &Snapshot, new: &Snapshot, at: u64) -> Vec<serde_json::Value> {
    let deleted: Vec<_> = old.difference(new).map(|entity| entity.event("deleted", at)).collect();
    let created = new.difference(old).map(|entity| entity.event("created", at));
    deleted.into_iter().rev().chain(created).collect()
}

struct IggyEventsSource {
    id: u32,
    config: Config,
    client: Option<TcpClient>, // the heartbeat of an IggyClient outlives its shutdown
    progress: Mutex<Progress>,
}

/// A snapshot counts once the events that led to it are acknowledged.
struct Progress {
    acknowledged: Result<Option<Snapshot>, Error>,
    in_flight: Option<Snapshot>,
}

/// The configuration holds a password, so nothing of it is shown.
impl std::fmt::Debug for IggyEventsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IggyEventsSource").field("id", &self.id).finish_non_exhaustive()
    }
}

impl IggyEventsSource {
    fn new(id: u32, config: Option<Config>, state: Option<ConnectorState>) -> Self {
        let state = state.filter(|state| !state.0.is_empty());
        let read = |state: ConnectorState| state.deserialize(NAME, id).ok_or(Error::InvalidState);
        let acknowledged = state.map(read).transpose();
        let progress = Mutex::new(Progress { acknowledged, in_flight: None });
        Self { id, config: config.unwrap_or_default(), client: None, progress }
    }
}

async fn look(client: &TcpClient) -> Result<Snapshot, IggyError> {
    let mut seen = Snapshot::new();
    for user in client.get_users().await? {
        seen.insert(Entity::User { user: user.username, created_at: user.created_at.as_micros() });
    }
    for stream in client.get_streams().await? {
        let created_at = stream.created_at.as_micros();
        seen.insert(Entity::Stream { stream: stream.name.clone(), created_at });
        let stream_id = Identifier::numeric(stream.id)?;
        for topic in client.get_topics(&stream_id).await? {
            let (stream, created_at) = (stream.name.clone(), topic.created_at.as_micros());
            let topic_id = Identifier::numeric(topic.id)?;
            let groups = client.get_consumer_groups(&stream_id, &topic_id).await?;
            let topic_name = || (stream.clone(), topic.name.clone());
            seen.extend((0..topic.partitions_count).map(|partition| {
                let (stream, topic) = topic_name();
                Entity::Partition { stream, topic, partition }
            }));
            seen.extend(groups.into_iter().map(|group| {
                let (stream, topic) = topic_name();
                Entity::ConsumerGroup { stream, topic, group: group.name }
            }));
            seen.insert(Entity::Topic { stream, topic: topic.name, created_at });
        }
    }
    Ok(seen)
}

fn message(event: &serde_json::Value) -> ProducedMessage {
    ProducedMessage {
        id: None,
        checksum: None,
        timestamp: None,
        origin_timestamp: None,
        headers: None,
        payload: event.to_string().into(),
    }
}

#[async_trait]
impl Source for IggyEventsSource {
    async fn open(&mut self) -> Result<(), Error> {
        self.progress.lock().unwrap().acknowledged.clone()?; // a broken state is not a fresh start
        let server = self.config.server.as_deref().unwrap_or("iggy://iggy:iggy@127.0.0.1:8090");
        let failed = |error: IggyError| Error::InitError(error.to_string());
        let client = TcpClient::from_connection_string(server).map_err(failed)?;
        client.connect().await.map_err(failed)?;
        self.client = Some(client);
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        let client = self.client.as_ref().ok_or(Error::InvalidState)?;
        let old = self.progress.lock().unwrap().acknowledged.clone()?;
        loop {
            tokio::time::sleep(parse_duration(self.config.interval.as_deref(), "5s")).await;
            let new = look(client).await.map_err(|error| Error::Connection(error.to_string()))?;
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let events = events(old.as_ref().unwrap_or(&new), &new, at.as_micros() as u64);
            // The first snapshot has to be stored, though it brings no event.
            if !events.is_empty() || old.is_none() {
                let state = ConnectorState::serialize(&new, NAME, self.id);
                self.progress.lock().unwrap().in_flight = Some(new);
                let messages = events.iter().map(message).collect();
                return Ok(ProducedMessages { schema: Schema::Json, messages, state });
            }
        }
    }

    async fn on_batch_result(&self, result: SourceBatchResult) -> Result<(), Error> {
        let mut progress = self.progress.lock().unwrap();
        if result == SourceBatchResult::Ack {
            progress.acknowledged = Ok(progress.in_flight.take());
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        if let Some(client) = self.client.take() {
            client.shutdown().await.map_err(|error| Error::Connection(error.to_string()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
