// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's postgres_source does.

#![deny(warnings)]

use async_trait::async_trait;
use iggy_common::serde_secret::serialize_secret;
use iggy_common::{DateTime, Utc};
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source, source_connector,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

source_connector!(Plugin);

#[derive(Debug, Serialize, Deserialize)]
struct Config {
    #[serde(serialize_with = "serialize_secret")]
    secret: SecretString,
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

fn time(text: &str) -> Option<DateTime<Utc>> {
    text.parse().ok()
}

fn failures() -> Vec<Error> {
    vec![
        Error::InitError("reason".to_owned()),
        Error::InvalidConfig,
        Error::InvalidConfigValue("reason".to_owned()),
        Error::InvalidRecord,
        Error::InvalidRecordValue("reason".to_owned()),
    ]
}

#[async_trait]
impl Source for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!("{} {:?}", self.id, self.config.secret.expose_secret().len());
        failures().iter().for_each(|error| println!("{error}"));
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        println!("{:?}", time("2026-01-01T00:00:00Z"));
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

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
