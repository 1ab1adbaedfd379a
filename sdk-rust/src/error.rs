// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The error type.

use crate::Schema;

/// What can go wrong in a connector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The configuration as a whole cannot be used.
    #[error("Invalid config")]
    InvalidConfig,
    /// One value of the configuration cannot be used.
    #[error("Invalid config value: {0}")]
    InvalidConfigValue(String),
    /// A record cannot be used.
    #[error("Invalid record")]
    InvalidRecord,
    /// One value of a record cannot be used.
    #[error("Invalid record value: {0}")]
    InvalidRecordValue(String),
    /// A transform cannot be built from its configuration.
    #[error("Invalid transformer")]
    InvalidTransformer,
    /// A request failed and may be repeated.
    #[error("HTTP request failed: {0}")]
    HttpRequestFailed(String),
    /// The connector cannot be readied.
    #[error("Init error: {0}")]
    InitError(String),
    /// The payload is of a kind that is not accepted here.
    #[error("Invalid payload type")]
    InvalidPayloadType,
    /// The payload is not valid JSON.
    #[error("Invalid JSON payload.")]
    InvalidJsonPayload,
    /// The payload is not valid UTF-8.
    #[error("Invalid text payload.")]
    InvalidTextPayload,
    /// The payload does not follow its schema.
    #[error("Cannot decode schema {0}")]
    CannotDecode(Schema),
    /// The storage behind the connector failed.
    #[error("Storage error: {0}")]
    Storage(String),
    /// A value cannot be serialized or deserialized.
    #[error("Serialization error: {0}")]
    Serialization(String),
    /// The payload is not a valid Protocol Buffers message.
    #[error("Invalid protobuf payload.")]
    InvalidProtobufPayload,
    /// The state file cannot be opened.
    #[error("Cannot open state file")]
    CannotOpenStateFile,
    /// The state file cannot be read.
    #[error("Cannot read state file")]
    CannotReadStateFile,
    /// The state file cannot be written.
    #[error("Cannot write state file")]
    CannotWriteStateFile,
    /// The state is not what this connector wrote.
    #[error("Invalid state")]
    InvalidState,
    /// The other side cannot be reached.
    #[error("Connection error: {0}")]
    Connection(String),
    /// Data could not be stored and may be handed over again.
    #[error("Cannot store data: {0}")]
    CannotStoreData(String),
    /// A request was refused for good: repeating it is of no use.
    #[error("Permanent HTTP error: {0}")]
    PermanentHttpError(String),
    /// Data and table have different schemas.
    #[cfg(level_head)]
    #[error("Schema mismatch: {0}")]
    SchemaMismatch(String),
    /// Files could not be written.
    #[cfg(level_head)]
    #[error("Write failure: {0}")]
    WriteFailure(String),
    /// The changes of a transaction could not be applied.
    #[cfg(level_head)]
    #[error("Transaction apply error: {0}")]
    TransactionApplyError(String),
    /// The catalog refused the commit.
    #[cfg(level_head)]
    #[error("Catalog commit error: {0}")]
    CatalogCommitError(String),
}
