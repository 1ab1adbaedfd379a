// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's meilisearch_sink does.

#![deny(warnings)]

use std::time::Duration;

use async_trait::async_trait;
use iggy_common::IggyTimestamp;
use iggy_common::serde_secret::serialize_optional_secret;
use iggy_connector_sdk::retry::{exponential_backoff, jitter, parse_duration};
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, Sink, TopicMetadata, sink_connector,
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

async fn patience() -> Result<(), Error> {
    let _ = exponential_backoff(Duration::from_secs(1), 1, Duration::from_secs(5));
    let _ = jitter(Duration::from_secs(1));
    let _ = parse_duration(Some("1s"), "5s");
    Ok(())
}

fn failures() -> Vec<Error> {
    vec![
        Error::Connection("reason".to_owned()),
        Error::HttpRequestFailed("reason".to_owned()),
        Error::InitError("reason".to_owned()),
        Error::InvalidConfigValue("reason".to_owned()),
        Error::InvalidRecordValue("reason".to_owned()),
        Error::PermanentHttpError("reason".to_owned()),
        Error::Serialization("reason".to_owned()),
    ]
}

fn size(payload: Payload) -> usize {
    match payload {
        Payload::Json(value) => value.to_string().len(),
        Payload::Raw(bytes) => bytes.len(),
        Payload::Text(text) => text.len(),
        _ => 0,
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
            println!("{}", IggyTimestamp::from(message.timestamp));
            println!("{}", size(message.payload));
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
