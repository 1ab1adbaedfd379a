// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Receives webhooks: each body that is posted becomes a message.
//!
//! | Key of `plugin_config` | Default | Meaning |
//! |---|---|---|
//! | `listen` | `127.0.0.1:8080` | address and port |
//! | `schema` | `json` | schema of the messages; with `json` a body that is none is answered 400 |
//! | `hmac_secret` | none | checks the header `x-hub-signature-256: sha256=…`; 401 when it is wrong |
//! | `batch_size` | `100` | most messages of a batch |
//!
//! A body is answered 202 when the host has acknowledged its batch, so one that was answered is
//! not lost, and 503 when the batch failed or the queue is full: then the sender tries again.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use iggy_connector_sdk::source::SourceBatchResult;
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source, source_connector,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::{error, info};

source_connector!(HttpSource);

#[derive(Deserialize)]
#[serde(default)]
struct Config {
    listen: String,
    schema: Schema,
    hmac_secret: Option<String>,
    batch_size: usize,
}

impl Default for Config {
    fn default() -> Self {
        let listen = "127.0.0.1:8080".to_owned();
        Self { listen, schema: Schema::Json, hmac_secret: None, batch_size: 100 }
    }
}

/// A body, and where its answer goes.
type Posted = (Bytes, Answer);
type Answer = oneshot::Sender<StatusCode>;

/// What the request handlers share.
struct Hooks {
    schema: Schema,
    secret: Option<String>,
    queue: mpsc::Sender<Posted>,
}

struct HttpSource {
    config: Config,
    hooks: Arc<Hooks>,
    queue: tokio::sync::Mutex<mpsc::Receiver<Posted>>,
    /// The answers of the batch in flight.
    unanswered: Mutex<Vec<Answer>>,
    server: Option<JoinHandle<()>>,
}

/// The configuration holds a secret, so nothing of it is shown.
impl std::fmt::Debug for HttpSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSource").finish_non_exhaustive()
    }
}

impl HttpSource {
    fn new(_id: u32, config: Option<Config>, _state: Option<ConnectorState>) -> Self {
        let config = config.unwrap_or_default();
        let (sender, queue) = mpsc::channel(config.batch_size.max(1));
        let secret = config.hmac_secret.clone();
        let hooks = Arc::new(Hooks { schema: config.schema, secret, queue: sender });
        let (queue, unanswered) = (tokio::sync::Mutex::new(queue), Mutex::default());
        Self { config, hooks, queue, unanswered, server: None }
    }
}

async fn receive(
    State(hooks): State<Arc<Hooks>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, StatusCode> {
    if hooks.secret.as_ref().is_some_and(|secret| !is_signed(secret, &headers, &body)) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let is_json = || serde_json::from_slice::<IgnoredAny>(&body).is_ok();
    if body.is_empty() || (hooks.schema == Schema::Json && !is_json()) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let (answer, answered) = oneshot::channel();
    let queued = hooks.queue.try_send((body, answer));
    queued.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    answered.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

fn is_signed(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    let signature = headers.get("x-hub-signature-256").and_then(|value| value.to_str().ok());
    let Some(signature) = signature.and_then(|text| from_hex(text.strip_prefix("sha256=")?)) else {
        return false;
    };
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes());
    mac.is_ok_and(|mac| mac.chain_update(body).verify_slice(&signature).is_ok())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

#[async_trait]
impl Source for HttpSource {
    async fn open(&mut self) -> Result<(), Error> {
        let listen = &self.config.listen;
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|error| Error::InitError(format!("cannot listen on {listen}: {error}")))?;
        info!("http_source receives at {listen}");
        let routes = Router::new().fallback(post(receive)).with_state(Arc::clone(&self.hooks));
        self.server = Some(tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                error!("http_source no longer receives: {error}");
            }
        }));
        Ok(())
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        let mut posted = Vec::new();
        self.queue.lock().await.recv_many(&mut posted, self.config.batch_size.max(1)).await;
        let (bodies, answers): (Vec<_>, Vec<_>) = posted.into_iter().unzip();
        *self.unanswered.lock().unwrap() = answers;
        let message = |body: Bytes| ProducedMessage {
            id: None,
            checksum: None,
            timestamp: None,
            origin_timestamp: None,
            headers: None,
            payload: body.into(),
        };
        let messages = bodies.into_iter().map(message).collect();
        Ok(ProducedMessages { schema: self.config.schema, messages, state: None })
    }

    async fn on_batch_result(&self, result: SourceBatchResult) -> Result<(), Error> {
        let status = match result {
            SourceBatchResult::Ack => StatusCode::ACCEPTED,
            SourceBatchResult::Nack => StatusCode::SERVICE_UNAVAILABLE,
        };
        for answer in self.unanswered.lock().unwrap().drain(..) {
            // A sender that has gone away does not wait for it.
            let _ = answer.send(status);
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        if let Some(server) = self.server.take() {
            server.abort();
            let _ = server.await; // until it has let go of its address
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
