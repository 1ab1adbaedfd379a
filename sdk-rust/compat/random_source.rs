// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's random_source does, the only one that wants to know results.

#![deny(warnings)]

use async_trait::async_trait;
use iggy_connector_sdk::source::SourceBatchResult;
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source, source_connector,
};
use serde::{Deserialize, Serialize};

source_connector!(Plugin);

#[derive(Debug, Deserialize)]
struct Config {
    name: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    count: u64,
}

#[derive(Debug)]
struct Plugin {
    id: u32,
    config: Config,
    state: State,
}

impl Plugin {
    fn new(id: u32, config: Config, state: Option<ConnectorState>) -> Self {
        let state = state.and_then(|state| state.deserialize("plugin", id)).unwrap_or_default();
        Self { id, config, state }
    }
}

fn failures() -> Vec<Error> {
    vec![Error::Serialization("reason".to_owned())]
}

#[async_trait]
impl Source for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!("{} {:?}", self.id, self.config.name);
        failures().iter().for_each(|error| println!("{error}"));
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        let message = ProducedMessage {
            id: Some(1),
            checksum: None,
            timestamp: None,
            origin_timestamp: None,
            headers: None,
            payload: b"{}".to_vec(),
        };
        Ok(ProducedMessages {
            schema: Schema::Json,
            messages: vec![message],
            state: ConnectorState::serialize(&self.state, "plugin", self.id),
        })
    }

    async fn on_batch_result(&self, result: SourceBatchResult) -> Result<(), Error> {
        match result {
            SourceBatchResult::Ack => Ok(()),
            SourceBatchResult::Nack => Err(Error::Serialization("reason".to_owned())),
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
