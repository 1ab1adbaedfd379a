// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's stdout_sink does.

#![deny(warnings)]

use async_trait::async_trait;
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Sink, TopicMetadata, sink_connector,
};
use serde::Deserialize;

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

#[async_trait]
impl Sink for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!("{} {:?}", self.id, self.config.name);
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
            println!("{message:?}");
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
