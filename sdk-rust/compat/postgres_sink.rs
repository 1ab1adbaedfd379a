// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's postgres_sink does.

#![deny(warnings)]

use async_trait::async_trait;
use iggy_common::serde_secret::serialize_secret;
use iggy_common::{DateTime, Utc};
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Sink, TopicMetadata, sink_connector,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

sink_connector!(Plugin);

#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(serialize_with = "serialize_secret")]
    secret: SecretString,
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

fn time(micros: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(i64::try_from(micros).ok()?)
}

fn failures() -> Vec<Error> {
    vec![Error::CannotStoreData("reason".to_owned()), Error::InitError("reason".to_owned())]
}

#[async_trait]
impl Sink for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!("{} {:?}", self.id, self.config.secret.expose_secret().len());
        failures().iter().for_each(|error| println!("{error}"));
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
            println!("{:?}", time(message.timestamp));
            println!("{}", message.payload.try_into_vec()?.len());
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
