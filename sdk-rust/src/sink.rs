// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! A sink instance behind the functions of `connector.h`.

use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use simd_json::Buffers;
use tracing::error;

use crate::edge::{self, FAILED, INVALID, OK, Panicked};
use crate::instances::Instances;
use crate::lifecycle::{Lifecycle, read_config};
use crate::log::{self, LogCallback};
use crate::{
    ConsumedMessage, MessagesMetadata, RawMessages, Schema, Sink, TopicMetadata, get_runtime,
};

/// Hands a batch to a sink: id, then topic metadata, messages metadata and messages, each as
/// pointer and length.
pub type ConsumeCallback =
    extern "C" fn(u32, *const u8, usize, *const u8, usize, *const u8, usize) -> i32;

/// One instance of a sink. [`sink_connector!`](crate::sink_connector) keeps them.
#[derive(Debug)]
pub struct SinkContainer<T: Sink + Debug> {
    id: u32,
    sink: Lifecycle<T>,
}

impl<T: Sink + Debug> SinkContainer<T> {
    /// A place for the instance `id`.
    pub const fn new(id: u32) -> Self {
        Self { id, sink: Lifecycle::Empty }
    }

    /// Makes the sink from its configuration and opens it.
    ///
    /// # Safety
    ///
    /// `config_ptr` must be valid for `config_len` bytes.
    pub unsafe fn open<F, C>(
        &mut self,
        id: u32,
        config_ptr: *const u8,
        config_len: usize,
        log_callback: LogCallback,
        factory: F,
    ) -> i32
    where
        F: FnOnce(u32, C) -> T,
        C: DeserializeOwned,
    {
        log::install(log_callback);
        // SAFETY: the caller promises it.
        let config = unsafe { edge::bytes(config_ptr, config_len) };
        self.sink.open(
            id,
            || Some(factory(id, read_config(id, config)?)),
            async |sink| sink.open().await,
        )
    }

    /// Closes the sink and drops it.
    ///
    /// # Safety
    ///
    /// None is needed; the signature is upstream's.
    pub unsafe fn close(&mut self) -> i32 {
        self.sink.close(self.id, async |sink| sink.close().await)
    }

    /// Consumes one batch. May be called from several threads at once.
    ///
    /// # Safety
    ///
    /// Each pointer must be valid for the number of bytes that follows it.
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn consume(
        &self,
        topic_meta_ptr: *const u8,
        topic_meta_len: usize,
        messages_meta_ptr: *const u8,
        messages_meta_len: usize,
        messages_ptr: *const u8,
        messages_len: usize,
    ) -> i32 {
        // SAFETY: the caller promises it.
        let (topic, metadata, messages) = unsafe {
            (
                edge::bytes(topic_meta_ptr, topic_meta_len),
                edge::bytes(messages_meta_ptr, messages_meta_len),
                edge::bytes(messages_ptr, messages_len),
            )
        };
        edge::guard(|| self.consume_bytes(topic, metadata, messages))
    }

    fn consume_bytes(&self, topic: &[u8], metadata: &[u8], messages: &[u8]) -> i32 {
        let Some(sink) = self.sink.ready() else {
            return INVALID;
        };
        let (Some(topic), Some(metadata), Some(batch)) = (
            self.decode::<TopicMetadata>(topic),
            self.decode::<MessagesMetadata>(metadata),
            self.decode::<RawMessages>(messages),
        ) else {
            return INVALID;
        };
        let messages = self.read_messages(batch, metadata.schema);
        match get_runtime().block_on(edge::catch(sink.consume(&topic, metadata, messages))) {
            Ok(Ok(())) => OK,
            Ok(Err(error)) => {
                error!("sink with id {} did not consume a batch: {error}", self.id);
                FAILED
            }
            Err(Panicked) => INVALID,
        }
    }

    fn decode<'a, V: Deserialize<'a>>(&self, bytes: &'a [u8]) -> Option<V> {
        postcard::from_bytes(bytes)
            .inspect_err(|error| {
                error!(
                    "sink with id {} cannot decode {}: {error}",
                    self.id,
                    std::any::type_name::<V>()
                );
            })
            .ok()
    }

    /// A message that cannot be read is skipped: it would fail in every repetition of the batch.
    fn read_messages(&self, batch: RawMessages, schema: Schema) -> Vec<ConsumedMessage> {
        let mut buffers = Buffers::default();
        let read = |message: crate::RawMessage| {
            let offset = message.offset;
            message
                .decode(schema, &mut buffers)
                .inspect_err(|error| {
                    error!(
                        "sink with id {} skips the message at offset {offset}: {error}",
                        self.id
                    );
                })
                .ok()
        };
        batch.messages.into_iter().filter_map(read).collect()
    }
}

/// What [`sink_connector!`](crate::sink_connector) exports.
impl<T: Sink + Debug> Instances<SinkContainer<T>> {
    /// # Safety
    ///
    /// As [`SinkContainer::open`].
    pub unsafe fn open<F, C>(
        &self,
        id: u32,
        config: *const u8,
        config_len: usize,
        log: LogCallback,
        factory: F,
    ) -> i32
    where
        F: FnOnce(u32, C) -> T,
        C: DeserializeOwned,
    {
        self.insert(id, SinkContainer::new(id), |sink| {
            // SAFETY: the caller promises it.
            unsafe { sink.open(id, config, config_len, log, factory) }
        })
    }

    /// # Safety
    ///
    /// As [`SinkContainer::consume`].
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn consume(
        &self,
        id: u32,
        topic: *const u8,
        topic_len: usize,
        metadata: *const u8,
        metadata_len: usize,
        messages: *const u8,
        messages_len: usize,
    ) -> i32 {
        self.read(id, |sink| {
            // SAFETY: the caller promises it.
            unsafe {
                sink.consume(topic, topic_len, metadata, metadata_len, messages, messages_len)
            }
        })
    }

    /// Frees the id.
    pub fn close(&self, id: u32) -> i32 {
        // SAFETY: nothing is asked for.
        self.remove(id, |sink| unsafe { sink.close() })
    }
}
