// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Write connectors for Apache Iggy in Rust.
//!
//! A *source* implements [`Source`] and produces messages, a *sink* implements [`Sink`] and
//! consumes them. [`source_connector!`] or [`sink_connector!`] turns the type into a plugin: a
//! shared library with the functions of `connector.h`, for a host to load.
//!
//! ```
//! use async_trait::async_trait;
//! use iggy_connector_sdk::{
//!     ConsumedMessage, Error, MessagesMetadata, Sink, TopicMetadata, sink_connector,
//! };
//!
//! #[derive(Debug)]
//! struct CountSink {
//!     id: u32,
//! }
//!
//! impl CountSink {
//!     fn new(id: u32, _config: Option<serde_json::Value>) -> Self {
//!         Self { id }
//!     }
//! }
//!
//! #[async_trait]
//! impl Sink for CountSink {
//!     async fn open(&mut self) -> Result<(), Error> {
//!         Ok(())
//!     }
//!
//!     async fn consume(
//!         &self,
//!         topic: &TopicMetadata,
//!         _metadata: MessagesMetadata,
//!         messages: Vec<ConsumedMessage>,
//!     ) -> Result<(), Error> {
//!         println!("{}: {} messages of {}", self.id, messages.len(), topic.topic);
//!         Ok(())
//!     }
//!
//!     async fn close(&mut self) -> Result<(), Error> {
//!         Ok(())
//!     }
//! }
//!
//! sink_connector!(CountSink);
//! # fn main() {}
//! ```
//!
//! The package needs `crate-type = ["cdylib"]`; [`mock_host`] tests it without a runtime.
//!
//! # Compatibility
//!
//! The API is that of upstream's crate of the same name, as far as plugins use it: a plugin
//! written for that one compiles against this one unchanged. Version 0.4 matches upstream's HEAD,
//! version 0.3 its server 0.8. What only upstream's host uses is left out: the modules `decoders`,
//! `encoders`, `transforms` and `api`, and the traits of the stream codecs.
//!
//! Where upstream's crate aborts the process or goes silent, this one does not: a panic is caught,
//! logged with message and place, and becomes the code -1 of the call or a restarted poll loop.
//! (That needs `panic = "unwind"`, Cargo's default.) A library built with it exports the
//! functions of both source generations, so it runs in this project's host and in either of
//! upstream's.
//!
//! # Blocking
//!
//! All instances of a library share one Tokio runtime with a worker a core. A `poll` that blocks
//! its thread, instead of awaiting, holds a worker, cannot be cancelled and delays its own close:
//! wrap such work in [`tokio::task::spawn_blocking`].

use std::sync::OnceLock;

use async_trait::async_trait;
use tokio::runtime::Runtime;

pub use convert::owned_value_to_serde_json;
pub use error::Error;
pub use log::LogCallback;
pub use message::{
    ConsumedMessage, DecodedMessage, MessagesMetadata, ProducedMessage, ProducedMessages,
    RawMessage, RawMessages, ReceivedMessage, TopicMetadata,
};
pub use payload::{Payload, Schema};
pub use state::ConnectorState;

mod edge;
mod error;
mod instances;
mod lifecycle;
mod macros;
mod message;
mod payload;
mod state;

pub mod convert;
pub mod log;
pub mod mock_host;
pub mod retry;
pub mod sink;
pub mod source;

#[doc(hidden)]
pub use macros::connector_macro_support;

/// Produces messages.
///
/// The type also has a constructor `fn new(id: u32, config: C, state: Option<ConnectorState>) -> Self`
/// for a `C` that is read from the JSON of `plugin_config`; [`source_connector!`] calls it.
#[async_trait]
pub trait Source: Send + Sync {
    /// Readies the source: connections are made here. An error makes the host's open fail.
    async fn open(&mut self) -> Result<(), Error>;

    /// Waits for the next batch.
    ///
    /// It is called again as soon as the batch has its result; after an error at once, so pause
    /// before returning one that will repeat. Closing drops the future where it awaits.
    async fn poll(&self) -> Result<ProducedMessages, Error>;

    /// Learns the fate of the batch polled last, before the next poll.
    ///
    /// Move a cursor, or delete rows, here and not in `poll`: after a Nack the same records are
    /// wanted again. An error ends the source. In a host of generation 1 each batch that was
    /// handed over counts as acknowledged.
    async fn on_batch_result(&self, result: source::SourceBatchResult) -> Result<(), Error> {
        let _ = result;
        Ok(())
    }

    /// Cleans up. Called once, after the last poll and result.
    async fn close(&mut self) -> Result<(), Error>;
}

/// Consumes messages.
///
/// The type also has a constructor `fn new(id: u32, config: C) -> Self` for a `C` that is read from
/// the JSON of `plugin_config`; [`sink_connector!`] calls it.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Readies the sink: connections are made here. An error makes the host's open fail.
    async fn open(&mut self) -> Result<(), Error>;

    /// Stores one batch of one partition, in the order of its offsets.
    ///
    /// Runs several times at once when the connector reads more than one topic. After `Ok` the host
    /// may commit the offset, so nothing may be left in a buffer; after an error it may hand
    /// the same batch over again. Messages that could not be decoded are missing from `messages`.
    async fn consume(
        &self,
        topic_metadata: &TopicMetadata,
        messages_metadata: MessagesMetadata,
        messages: Vec<ConsumedMessage>,
    ) -> Result<(), Error>;

    /// Cleans up. Called once, after the last `consume` returned.
    async fn close(&mut self) -> Result<(), Error>;
}

/// The Tokio runtime that all instances of this library share, created on first use.
///
/// # Panics
///
/// When the process cannot start threads.
pub fn get_runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .on_thread_start(edge::block_signals)
            .build()
            .expect("the Tokio runtime of the plugin must start")
    })
}
