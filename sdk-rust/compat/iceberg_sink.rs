// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's iceberg_sink does.

#![deny(warnings)]

use async_trait::async_trait;
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, Schema, Sink, TopicMetadata, sink_connector,
};
use serde::Deserialize;
use simd_json::OwnedValue;
use simd_json::base::ValueAsObject;

sink_connector!(Plugin);

#[derive(Debug, Deserialize)]
struct Config {
    name: Option<String>,
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

fn members(value: &OwnedValue) -> usize {
    value.as_object().map_or(0, |object| object.len())
}

fn failures() -> Vec<Error> {
    vec![
        #[cfg(level_head)]
        Error::CatalogCommitError("reason".to_owned()),
        Error::InitError("reason".to_owned()),
        Error::InvalidConfig,
        Error::InvalidConfigValue("reason".to_owned()),
        Error::InvalidRecordValue("reason".to_owned()),
        Error::InvalidState,
        #[cfg(level_head)]
        Error::SchemaMismatch("reason".to_owned()),
        #[cfg(level_head)]
        Error::TransactionApplyError("reason".to_owned()),
        #[cfg(level_head)]
        Error::WriteFailure("reason".to_owned()),
    ]
}

fn size(payload: Payload) -> usize {
    match payload {
        Payload::Json(value) => value.to_string().len(),
        _ => 0,
    }
}

#[async_trait]
impl Sink for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!("{} {:?}", self.id, self.config.name);
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
            if messages_metadata.schema != Schema::Json {
                return Err(Error::InvalidConfig);
            }
            if let Payload::Json(value) = &message.payload {
                println!("{}", members(value));
            }
            println!("{}", size(message.payload));
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
