// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Payloads and how they are read.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use prost::Message;
use serde::{Deserialize, Serialize};
use simd_json::{Buffers, OwnedValue};

use crate::Error;

/// How the bytes of a payload are to be read.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schema {
    /// JSON text.
    #[default]
    Json,
    /// Bytes without meaning.
    Raw,
    /// UTF-8 text.
    Text,
    /// A Protocol Buffers message.
    Proto,
    /// A FlatBuffers buffer.
    FlatBuffer,
    /// An Avro datum.
    #[cfg(level_head)]
    Avro,
}

impl Schema {
    /// Reads a payload.
    ///
    /// A Protocol Buffers payload that is a `google.protobuf.Any` becomes JSON with the members
    /// `type_url` and `value` (base64); any other stays as it is, as [`Payload::Raw`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidJsonPayload`] and [`Error::InvalidTextPayload`].
    pub fn try_into_payload(self, value: Vec<u8>) -> Result<Payload, Error> {
        self.read(value, &mut Buffers::default())
    }

    /// As [`Schema::try_into_payload`], for many payloads: the JSON parser keeps its buffers.
    pub(crate) fn read(self, mut value: Vec<u8>, buffers: &mut Buffers) -> Result<Payload, Error> {
        Ok(match self {
            Schema::Json => {
                let json = simd_json::value::owned::to_value_with_buffers(&mut value, buffers);
                Payload::Json(json.map_err(|_| Error::InvalidJsonPayload)?)
            }
            Schema::Raw => Payload::Raw(value),
            Schema::Text => {
                Payload::Text(String::from_utf8(value).map_err(|_| Error::InvalidTextPayload)?)
            }
            Schema::Proto => match prost_types::Any::decode(value.as_slice()) {
                Ok(any) => Payload::Json(simd_json::json!({
                    "type_url": any.type_url,
                    "value": BASE64.encode(any.value),
                })),
                Err(_) => Payload::Raw(value),
            },
            Schema::FlatBuffer => Payload::FlatBuffer(value),
            #[cfg(level_head)]
            Schema::Avro => Payload::Avro(value),
        })
    }
}

impl From<Schema> for &'static str {
    fn from(schema: Schema) -> Self {
        match schema {
            Schema::Json => "json",
            Schema::Raw => "raw",
            Schema::Text => "text",
            Schema::Proto => "proto",
            Schema::FlatBuffer => "flatbuffer",
            #[cfg(level_head)]
            Schema::Avro => "avro",
        }
    }
}

impl From<&Schema> for &'static str {
    fn from(schema: &Schema) -> Self {
        (*schema).into()
    }
}

/// The name for people. In configuration files `flatbuffer` is spelt `flat_buffer`.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.into())
    }
}

/// A payload that has been read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Payload {
    /// A JSON value.
    Json(OwnedValue),
    /// Bytes without meaning.
    Raw(Vec<u8>),
    /// Text.
    Text(String),
    /// A Protocol Buffers message as text.
    Proto(String),
    /// A FlatBuffers buffer.
    FlatBuffer(Vec<u8>),
    /// An Avro datum.
    #[cfg(level_head)]
    Avro(Vec<u8>),
}

impl Payload {
    /// The bytes to store or send; JSON in its compact form.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidJsonPayload`] for JSON that cannot be written.
    pub fn try_into_vec(self) -> Result<Vec<u8>, Error> {
        match self {
            Payload::Json(value) => json_to_vec(&value),
            Payload::Raw(bytes) | Payload::FlatBuffer(bytes) => Ok(bytes),
            #[cfg(level_head)]
            Payload::Avro(bytes) => Ok(bytes),
            Payload::Text(text) | Payload::Proto(text) => Ok(text.into_bytes()),
        }
    }

    /// As [`Payload::try_into_vec`], keeping the payload.
    ///
    /// # Errors
    ///
    /// As [`Payload::try_into_vec`].
    pub fn try_to_bytes(&self) -> Result<Vec<u8>, Error> {
        match self {
            Payload::Json(value) => json_to_vec(value),
            Payload::Raw(bytes) | Payload::FlatBuffer(bytes) => Ok(bytes.clone()),
            #[cfg(level_head)]
            Payload::Avro(bytes) => Ok(bytes.clone()),
            Payload::Text(text) | Payload::Proto(text) => Ok(text.clone().into_bytes()),
        }
    }
}

fn json_to_vec(value: &OwnedValue) -> Result<Vec<u8>, Error> {
    simd_json::to_vec(value).map_err(|_| Error::InvalidJsonPayload)
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Json(value) => {
                let text = simd_json::to_string_pretty(value).map_err(|_| fmt::Error)?;
                write!(f, "Json({text})")
            }
            Payload::Raw(bytes) => write!(f, "Raw({bytes:#?})"),
            Payload::Text(text) => write!(f, "Text({text})"),
            Payload::Proto(text) => write!(f, "Proto({text})"),
            Payload::FlatBuffer(bytes) => write!(f, "FlatBuffer({} bytes)", bytes.len()),
            #[cfg(level_head)]
            Payload::Avro(bytes) => write!(f, "Avro({} bytes)", bytes.len()),
        }
    }
}
