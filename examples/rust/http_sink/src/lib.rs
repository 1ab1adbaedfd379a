// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Posts messages to an HTTP service.
//!
//! | Key of `plugin_config` | Default | Meaning |
//! |---|---|---|
//! | `url` | required | where to |
//! | `method` | `POST` | request method |
//! | `headers` | none | request headers, as a table |
//! | `batch_mode` | `individual` | `individual`: a request for each message; `ndjson`, `json_array`: one for the batch; `raw`: a request with the bytes of each message |
//! | `include_metadata` | `true` | wraps each payload in `{"metadata": …, "payload": …}` (not in `raw`) |
//! | `timeout` | `30s` | of a request |
//! | `max_retries` | `3` | retries of a request that failed in transit, or was answered 429 or 5xx |
//! | `retry_delay`, `max_retry_delay` | `1s`, `30s` | pause before the first retry, and its ceiling |
//!
//! A batch has failed when one of its requests is not answered with 2xx. The host then hands it
//! over again as a whole, so the service may see messages twice.

use std::collections::HashMap;
use std::fmt::Display;

use async_trait::async_trait;
use iggy_connector_sdk::retry::{build_retry_client, parse_duration};
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Payload, Sink, TopicMetadata,
    owned_value_to_serde_json, sink_connector,
};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Url};
use reqwest_middleware::ClientWithMiddleware;
use serde::Deserialize;
use serde_json::{Value, json};

sink_connector!(HttpSink);

#[derive(Debug, Deserialize)]
struct Config {
    url: String,
    method: Option<String>,
    #[serde(default)]
    headers: HashMap<String, String>,
    #[serde(default)]
    batch_mode: BatchMode,
    include_metadata: Option<bool>,
    timeout: Option<String>,
    max_retries: Option<u32>,
    retry_delay: Option<String>,
    max_retry_delay: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BatchMode {
    #[default]
    Individual,
    Ndjson,
    JsonArray,
    Raw,
}

#[derive(Debug)]
struct HttpSink {
    config: Config,
    service: Option<Service>,
}

#[derive(Debug)]
struct Service {
    client: ClientWithMiddleware,
    method: Method,
    url: Url,
}

impl HttpSink {
    fn new(_id: u32, config: Config) -> Self {
        Self { config, service: None }
    }

    fn connect(&self) -> Result<Service, Error> {
        let config = &self.config;
        let method = config.method.as_deref().unwrap_or("POST");
        let client = reqwest::Client::builder()
            .default_headers(HeaderMap::try_from(&config.headers).map_err(invalid("headers"))?)
            .timeout(parse_duration(config.timeout.as_deref(), "30s"))
            .build()
            .map_err(|error| Error::InitError(error.to_string()))?;
        let client = build_retry_client(
            client,
            config.max_retries.unwrap_or(3).saturating_add(1),
            parse_duration(config.retry_delay.as_deref(), "1s"),
            parse_duration(config.max_retry_delay.as_deref(), "30s"),
            "http_sink",
        );
        Ok(Service {
            client,
            method: method.parse().map_err(invalid("method"))?,
            url: config.url.parse().map_err(invalid("url"))?,
        })
    }

    /// The bodies of the requests for a batch, and their content type.
    fn bodies(
        &self,
        topic: &TopicMetadata,
        metadata: &MessagesMetadata,
        messages: &[ConsumedMessage],
    ) -> Result<(&'static str, Vec<Vec<u8>>), Error> {
        let mode = self.config.batch_mode;
        if matches!(mode, BatchMode::Raw) {
            let bodies = messages.iter().map(|message| message.payload.try_to_bytes());
            return Ok(("application/octet-stream", bodies.collect::<Result<_, _>>()?));
        }
        let values = messages.iter().map(|message| self.to_json(topic, metadata, message));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(match mode {
            BatchMode::JsonArray => {
                ("application/json", vec![Value::Array(values).to_string().into()])
            }
            BatchMode::Ndjson => {
                let lines = values.iter().map(|value| format!("{value}\n"));
                ("application/x-ndjson", vec![lines.collect::<String>().into()])
            }
            _ => {
                ("application/json", values.iter().map(|value| value.to_string().into()).collect())
            }
        })
    }

    fn to_json(
        &self,
        topic: &TopicMetadata,
        metadata: &MessagesMetadata,
        message: &ConsumedMessage,
    ) -> Result<Value, Error> {
        let payload = match &message.payload {
            Payload::Json(value) => owned_value_to_serde_json(value),
            Payload::Text(text) | Payload::Proto(text) => json!(text),
            // Bytes have no JSON form; they need `batch_mode = "raw"`.
            _ => return Err(Error::InvalidPayloadType),
        };
        if !self.config.include_metadata.unwrap_or(true) {
            return Ok(payload);
        }
        Ok(json!({
            "metadata": {
                "iggy_id": format!("{:032x}", message.id), "iggy_timestamp": message.timestamp,
                "iggy_stream": topic.stream, "iggy_topic": topic.topic,
                "iggy_partition_id": metadata.partition_id, "iggy_offset": message.offset,
            },
            "payload": payload,
        }))
    }
}

fn invalid<E: Display>(key: &str) -> impl Fn(E) -> Error {
    move |error| Error::InvalidConfigValue(format!("{key}: {error}"))
}

#[async_trait]
impl Sink for HttpSink {
    async fn open(&mut self) -> Result<(), Error> {
        self.service = Some(self.connect()?);
        Ok(())
    }

    async fn consume(
        &self,
        topic: &TopicMetadata,
        metadata: MessagesMetadata,
        messages: Vec<ConsumedMessage>,
    ) -> Result<(), Error> {
        if messages.is_empty() {
            return Ok(());
        }
        let service = self.service.as_ref().ok_or(Error::InvalidState)?;
        let (content_type, bodies) = self.bodies(topic, &metadata, &messages)?;
        for body in bodies {
            let request = service.client.request(service.method.clone(), service.url.clone());
            let answer = request.header(CONTENT_TYPE, content_type).body(body).send().await;
            let status = answer.map_err(|e| Error::HttpRequestFailed(e.to_string()))?.status();
            if !status.is_success() {
                return Err(Error::HttpRequestFailed(format!("the service answered {status}")));
            }
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
