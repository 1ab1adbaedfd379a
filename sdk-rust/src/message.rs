// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The structures that cross the border, and those that plugins are given.
//!
//! Field order is wire order (`abi/wire.md`); the encoding is postcard.

use std::collections::BTreeMap;

use iggy_common::{HeaderKey, HeaderValue};
use serde::{Deserialize, Serialize};
use simd_json::Buffers;

use crate::{ConnectorState, Payload, Schema};

/// Headers of one message.
pub(crate) type Headers = BTreeMap<HeaderKey, HeaderValue>;

/// Where a batch for a sink comes from.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct TopicMetadata {
    /// Name of the stream.
    pub stream: String,
    /// Name of the topic.
    pub topic: String,
}

/// What all messages of a batch for a sink have in common.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct MessagesMetadata {
    /// Partition that the messages were read from.
    pub partition_id: u32,
    /// Offset of the newest message in the partition when the batch was read.
    pub current_offset: u64,
    /// How the payloads are to be read.
    pub schema: Schema,
}

/// A message as it was read from Iggy.
#[repr(C)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReceivedMessage {
    /// Message id, chosen by the producer or else by the server.
    pub id: u128,
    /// Place in the partition.
    pub offset: u64,
    /// Checksum that the server computed.
    pub checksum: u64,
    /// When the server took the message, in microseconds since the Unix epoch.
    pub timestamp: u64,
    /// When the producer made the message, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// User headers.
    pub headers: Option<BTreeMap<HeaderKey, HeaderValue>>,
    /// Payload as it is stored.
    #[serde(with = "serde_bytes")]
    pub payload: Vec<u8>,
}

/// A message as a sink consumes it.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct ConsumedMessage {
    /// Message id, chosen by the producer or else by the server.
    pub id: u128,
    /// Place in the partition.
    pub offset: u64,
    /// Checksum that the server computed.
    pub checksum: u64,
    /// When the server took the message, in microseconds since the Unix epoch.
    pub timestamp: u64,
    /// When the producer made the message, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// User headers.
    pub headers: Option<BTreeMap<HeaderKey, HeaderValue>>,
    /// Payload, read by the schema of the batch.
    pub payload: Payload,
}

/// A message on its way through a host, where each part may still be missing.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct DecodedMessage {
    /// Message id.
    pub id: Option<u128>,
    /// Place in the partition.
    pub offset: Option<u64>,
    /// Checksum that the server computed.
    pub checksum: Option<u64>,
    /// When the server took the message, in microseconds since the Unix epoch.
    pub timestamp: Option<u64>,
    /// When the producer made the message, in microseconds since the Unix epoch.
    pub origin_timestamp: Option<u64>,
    /// User headers.
    pub headers: Option<BTreeMap<HeaderKey, HeaderValue>>,
    /// Payload.
    pub payload: Payload,
}

/// What one poll of a source gives: a batch, and the state that holds once it is stored.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct ProducedMessages {
    /// How the payloads are to be read.
    pub schema: Schema,
    /// The messages, in the order in which they are to be sent.
    pub messages: Vec<ProducedMessage>,
    /// State to be stored with the batch. `None` leaves the stored one as it is.
    pub state: Option<ConnectorState>,
}

/// A message that a source produces.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct ProducedMessage {
    /// Message id. `None` lets the host choose one.
    pub id: Option<u128>,
    /// Ignored; the server computes its own.
    pub checksum: Option<u64>,
    /// Ignored; the server's clock counts.
    pub timestamp: Option<u64>,
    /// When the record was made, in microseconds since the Unix epoch.
    pub origin_timestamp: Option<u64>,
    /// User headers.
    pub headers: Option<BTreeMap<HeaderKey, HeaderValue>>,
    /// Payload, 1 byte to 64 MB, in the schema of the batch.
    #[serde(with = "serde_bytes")]
    pub payload: Vec<u8>,
}

/// A batch for a sink, as it crosses the border.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct RawMessages {
    /// Schema of the payloads; [`MessagesMetadata::schema`] is the one that counts.
    pub schema: Schema,
    /// The messages, in the order of their offsets.
    pub messages: Vec<RawMessage>,
}

/// A message for a sink, as it crosses the border.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct RawMessage {
    /// Message id.
    pub id: u128,
    /// Place in the partition.
    pub offset: u64,
    /// Checksum that the server computed.
    pub checksum: u64,
    /// When the server took the message, in microseconds since the Unix epoch.
    pub timestamp: u64,
    /// When the producer made the message, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// The user headers, encoded on their own; empty when there are none.
    #[serde(with = "serde_bytes")]
    pub headers: Vec<u8>,
    /// Payload.
    #[serde(with = "serde_bytes")]
    pub payload: Vec<u8>,
}

impl RawMessage {
    /// Reads headers and payload.
    pub(crate) fn decode(
        self,
        schema: Schema,
        buffers: &mut Buffers,
    ) -> Result<ConsumedMessage, crate::Error> {
        Ok(ConsumedMessage {
            id: self.id,
            offset: self.offset,
            checksum: self.checksum,
            timestamp: self.timestamp,
            origin_timestamp: self.origin_timestamp,
            headers: decode_headers(&self.headers)?,
            payload: schema.read(self.payload, buffers)?,
        })
    }
}

fn decode_headers(encoded: &[u8]) -> Result<Option<Headers>, crate::Error> {
    if encoded.is_empty() {
        return Ok(None);
    }
    postcard::from_bytes(encoded)
        .map(Some)
        .map_err(|error| crate::Error::Serialization(format!("headers: {error}")))
}

impl ProducedMessages {
    /// The bytes for the host.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        // A message without headers has at most 59 bytes beside its payload.
        let payloads: usize = self.messages.iter().map(|m| m.payload.len() + 64).sum();
        let state = self.state.as_ref().map_or(0, |state| state.0.len());
        postcard::to_extend(self, Vec::with_capacity(payloads + state + 32))
    }
}
