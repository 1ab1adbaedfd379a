// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's influxdb_source does.

#![deny(warnings)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use iggy_common::serde_secret::serialize_secret;
use iggy_common::{DateTime, Utc};
use iggy_connector_sdk::retry::{
    CircuitBreaker, ConnectivityConfig, build_retry_client, check_connectivity_with_retry,
    is_transient_status, parse_duration,
};
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source, source_connector,
};
use reqwest::{StatusCode, Url};
use reqwest_middleware::ClientWithMiddleware;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use simd_json::BorrowedValue;

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

fn is_json(text: &mut [u8]) -> bool {
    simd_json::to_borrowed_value(text).is_ok_and(|value: BorrowedValue| value != false)
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    text.parse().ok()
}

async fn patience() -> Result<(), Error> {
    let _ = parse_duration(Some("1s"), "5s");
    let breaker = Arc::new(CircuitBreaker::new(3, Duration::from_secs(1)));
    breaker.record_failure().await;
    breaker.record_success();
    let _ = breaker.is_open().await;
    let _ = is_transient_status(StatusCode::BAD_GATEWAY);
    let client = reqwest::Client::new();
    let delay = Duration::from_millis(1);
    let _: ClientWithMiddleware = build_retry_client(client.clone(), 3, delay, delay, "plugin");
    let config =
        ConnectivityConfig { max_open_retries: 1, open_retry_max_delay: delay, retry_delay: delay };
    let url =
        Url::parse("http://127.0.0.1:1/").map_err(|_| Error::InvalidConfigValue("url".into()))?;
    check_connectivity_with_retry(&client, url, "plugin", 1, &config).await?;
    Ok(())
}

fn failures() -> Vec<Error> {
    vec![
        Error::Connection("reason".to_owned()),
        Error::InitError("reason".to_owned()),
        Error::InvalidConfigValue("reason".to_owned()),
        Error::InvalidRecordValue("reason".to_owned()),
        Error::InvalidState,
        Error::PermanentHttpError("reason".to_owned()),
        Error::Serialization("reason".to_owned()),
        Error::Storage("reason".to_owned()),
    ]
}

#[async_trait]
impl Source for Plugin {
    async fn open(&mut self) -> Result<(), Error> {
        println!("{} {:?}", self.id, self.config.secret.expose_secret().len());
        failures().iter().for_each(|error| println!("{error}"));
        patience().await?;
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        println!("{} {:?}", is_json(&mut b"{}".to_vec()), time("2026-01-01T00:00:00Z"));
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
