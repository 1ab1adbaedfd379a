// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's s3_sink does, which relies on a name that the macro leaves.

#![deny(warnings)]

use std::time::Duration;

use async_trait::async_trait;
use iggy_common::serde_secret::serialize_optional_secret;
use iggy_common::{HeaderKey, HeaderKind, HeaderValue};
use iggy_connector_sdk::retry::{exponential_backoff, jitter};
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, Sink, TopicMetadata,
    owned_value_to_serde_json, sink_connector,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

sink_connector!(Plugin);

#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(serialize_with = "serialize_optional_secret")]
    secret: Option<SecretString>,
}

#[derive(Debug)]
struct Plugin {
    id: u32,
    config: Config,
}

impl Plugin {
    fn new(id: u32, config: Config) -> Self {
        Self { id, config }
    }
}

/// The macro leaves the name `DashMap` in scope.
fn buffers() -> DashMap<String, Vec<u8>> {
    DashMap::new()
}

fn describe_key(key: &HeaderKey) -> String {
    key.as_str().map_or_else(|_| key.to_string_value(), str::to_owned)
}

fn describe_value(value: &HeaderValue) -> String {
    match value.kind() {
        HeaderKind::Raw => format!("{:?}", value.as_raw()),
        HeaderKind::Bool => format!("{:?}", value.as_bool()),
        _ => value.to_string_value(),
    }
}

async fn patience() -> Result<(), Error> {
    let _ = exponential_backoff(Duration::from_secs(1), 1, Duration::from_secs(5));
    let _ = jitter(Duration::from_secs(1));
    Ok(())
}

fn failures() -> Vec<Error> {
    vec![
        Error::CannotStoreData("reason".to_owned()),
        Error::InitError("reason".to_owned()),
        Error::InvalidConfigValue("reason".to_owned()),
    ]
}

fn size(payload: Payload) -> usize {
    match payload {
        Payload::Json(value) => value.to_string().len(),
        Payload::Raw(bytes) | Payload::FlatBuffer(bytes) => bytes.len(),
        #[cfg(level_head)]
        Payload::Avro(bytes) => bytes.len(),
        Payload::Text(text) | Payload::Proto(text) => text.len(),
    }
}

#[async_trait]
impl Sink for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!(
            "{} {:?}",
            self.id,
            self.config.secret.as_ref().map(|secret| secret.expose_secret().len())
        );
        failures().iter().for_each(|error| println!("{error}"));
        patience().await?;
        Ok(())
    }

    async fn consume(
        &self,
        topic_metadata: &TopicMetadata,
        messages_metadata: MessagesMetadata,
        messages: Vec<ConsumedMessage>,
    ) -> Result<(), Error> {
        println!("{} {}", topic_metadata.topic, messages_metadata.partition_id);
        for message in messages {
            for (key, value) in message.headers.iter().flatten() {
                println!("{} {}", describe_key(key), describe_value(value));
            }
            if let Payload::Json(value) = &message.payload {
                println!("{}", owned_value_to_serde_json(value));
            }
            buffers().insert(topic_metadata.topic.clone(), message.payload.try_to_bytes()?);
            println!("{}", size(message.payload));
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
