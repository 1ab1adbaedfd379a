// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! What a source wants to know after a restart.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracing::{error, warn};

/// State of a source: bytes that the host stores and hands back, and never reads.
#[repr(C)]
#[derive(Debug, Serialize, Deserialize)]
pub struct ConnectorState(#[serde(with = "serde_bytes")] pub Vec<u8>);

impl ConnectorState {
    /// Reads a value that [`ConnectorState::serialize`] wrote.
    ///
    /// `None`, with a warning in the log, when the bytes are not such a value.
    pub fn deserialize<T: DeserializeOwned>(
        self,
        connector_name: &str,
        connector_id: u32,
    ) -> Option<T> {
        rmp_serde::from_slice(&self.0)
            .inspect_err(|error| {
                warn!("{connector_name} with id {connector_id} cannot read its state: {error}");
            })
            .ok()
    }

    /// Writes a value as MessagePack.
    ///
    /// `None`, with an error in the log, when it cannot be written.
    pub fn serialize<T: Serialize>(
        state: &T,
        connector_name: &str,
        connector_id: u32,
    ) -> Option<Self> {
        rmp_serde::to_vec(state)
            .inspect_err(|error| {
                error!("{connector_name} with id {connector_id} cannot write its state: {error}");
            })
            .map(Self)
            .ok()
    }
}
