// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Imports and uses what upstream's influxdb_sink does.

#![deny(warnings)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use iggy_common::serde_secret::serialize_secret;
use iggy_connector_sdk::retry::{
    CircuitBreaker, ConnectivityConfig, build_retry_client, check_connectivity_with_retry,
    is_transient_status, parse_duration,
};
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, Sink, TopicMetadata, sink_connector,
};
use reqwest::{StatusCode, Url};
use reqwest_middleware::ClientWithMiddleware;
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
        Error::CannotStoreData("reason".to_owned()),
        Error::Connection("reason".to_owned()),
        Error::InitError("reason".to_owned()),
        Error::InvalidConfigValue("reason".to_owned()),
        Error::PermanentHttpError("reason".to_owned()),
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
        println!("{} {:?}", self.id, self.config.secret.expose_secret().len());
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
            println!("{}", message.payload.try_to_bytes()?.len());
            println!("{}", size(message.payload));
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
