// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! What sinks and sources have in common: being opened and closed once.

use serde::de::DeserializeOwned;
use tracing::error;

use crate::edge::{self, FAILED, INVALID, OK, Panicked};
use crate::{Error, get_runtime};

/// An instance from open to close.
#[derive(Debug)]
pub(crate) enum Lifecycle<T> {
    /// Never opened, or the configuration was refused, or it panicked.
    Empty,
    /// The author's `open` failed; only `close` follows.
    Failed(T),
    /// Ready for work.
    Open(T),
}

impl<T> Lifecycle<T> {
    /// The instance, when it may work.
    pub(crate) fn ready(&self) -> Option<&T> {
        match self {
            Lifecycle::Open(instance) => Some(instance),
            Lifecycle::Empty | Lifecycle::Failed(_) => None,
        }
    }

    /// Makes an instance and opens it.
    pub(crate) fn open(
        &mut self,
        id: u32,
        make: impl FnOnce() -> Option<T>,
        open: impl AsyncFnOnce(&mut T) -> Result<(), Error>,
    ) -> i32 {
        edge::guard(|| {
            let opened = get_runtime().block_on(async {
                let mut instance = make()?;
                let result = edge::catch(open(&mut instance)).await;
                Some((instance, result))
            });
            match opened {
                Some((instance, Ok(Ok(())))) => {
                    *self = Lifecycle::Open(instance);
                    OK
                }
                Some((instance, Ok(Err(error)))) => {
                    error!("connector with id {id} cannot be opened: {error}");
                    *self = Lifecycle::Failed(instance);
                    FAILED
                }
                Some((_, Err(Panicked))) | None => INVALID,
            }
        })
    }

    /// Closes the instance and drops it.
    pub(crate) fn close(
        &mut self,
        id: u32,
        close: impl AsyncFnOnce(&mut T) -> Result<(), Error>,
    ) -> i32 {
        edge::guard(|| {
            let (Lifecycle::Open(mut instance) | Lifecycle::Failed(mut instance)) =
                std::mem::replace(self, Lifecycle::Empty)
            else {
                return INVALID;
            };
            get_runtime().block_on(async {
                match edge::catch(close(&mut instance)).await {
                    Ok(Ok(())) => OK,
                    Ok(Err(error)) => {
                        error!("connector with id {id} had troubles at close: {error}");
                        OK
                    }
                    Err(Panicked) => INVALID,
                }
            })
        })
    }
}

/// Reads `plugin_config`. The reason of a failure goes to the log.
pub(crate) fn read_config<C: DeserializeOwned>(id: u32, json: &[u8]) -> Option<C> {
    std::str::from_utf8(json)
        .map_err(|error| error.to_string())
        .and_then(|json| serde_json::from_str(json).map_err(|error| error.to_string()))
        .inspect_err(|error| error!("connector with id {id} cannot use its plugin_config: {error}"))
        .ok()
}
