// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's clickhouse_sink does.

#![deny(warnings)]

use async_trait::async_trait;
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, Sink, TopicMetadata, sink_connector,
};
use serde::Deserialize;
use simd_json::OwnedValue;
use simd_json::prelude::*;

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

fn member(value: &OwnedValue) -> Option<&str> {
    value.get("name")?.as_str()
}

fn failures() -> Vec<Error> {
    vec![
        Error::CannotStoreData("reason".to_owned()),
        Error::InitError("reason".to_owned()),
        Error::InvalidRecord,
        Error::PermanentHttpError("reason".to_owned()),
    ]
}

fn size(payload: Payload) -> usize {
    match payload {
        Payload::Json(value) => value.to_string().len(),
        Payload::Text(text) => text.len(),
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
            if let Payload::Json(value) = &message.payload {
                println!("{:?}", member(value));
            }
            println!("{}", size(message.payload));
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
