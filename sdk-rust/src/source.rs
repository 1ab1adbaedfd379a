// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! A source instance behind the functions of `connector.h`.

use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::edge::{self, INVALID};
use crate::instances::Instances;
use crate::lifecycle::{Lifecycle, read_config};
use crate::log::{self, LogCallback};
use crate::{ConnectorState, Source};

mod delivery;
mod poll_loop;
#[cfg(test)]
mod tests;

use delivery::Policy;
use poll_loop::PollTask;

/// Takes a batch of a generation 1 source: id, then the messages as pointer and length.
#[cfg(not(level_head))]
pub type SendCallback = SendCallbackV1;

/// Takes a batch of a generation 2 source: id, batch id, then the messages as pointer and length.
#[cfg(level_head)]
pub type SendCallback = SendCallbackV2;

#[doc(hidden)]
pub type SendCallbackV1 = extern "C" fn(u32, *const u8, usize);

#[doc(hidden)]
pub type SendCallbackV2 = extern "C" fn(u32, u64, *const u8, usize) -> i32;

/// Starts a source: id and where its batches go.
pub type HandleCallback = extern "C" fn(u32, SendCallback) -> i32;

/// Reports the fate of a batch: id, batch id, and a [`SourceBatchResult`] as number.
pub type BatchResultCallback = extern "C" fn(u32, u64, u8) -> i32;

/// The fate of a batch.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceBatchResult {
    /// Every message has its outcome and the state is stored.
    Ack = 0,
    /// The batch failed; the same records are wanted again.
    Nack = 1,
}

impl TryFrom<u8> for SourceBatchResult {
    type Error = ();

    fn try_from(code: u8) -> Result<Self, ()> {
        match code {
            0 => Ok(Self::Ack),
            1 => Ok(Self::Nack),
            _ => Err(()),
        }
    }
}

/// A message at the border, as pointers. Nothing uses it; it is part of upstream's API.
#[repr(C)]
#[derive(Debug)]
pub struct RawMessage {
    /// Place in the partition.
    pub offset: u64,
    /// Encoded headers.
    pub headers_ptr: *const u8,
    /// Their length.
    pub headers_len: usize,
    /// Payload.
    pub payload_ptr: *const u8,
    /// Its length.
    pub payload_len: usize,
}

/// Where batches go, and whether anything comes back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sender {
    /// Generation 1: nothing comes back.
    V1(SendCallbackV1),
    /// Generation 2: a batch result comes back.
    V2(SendCallbackV2),
}

/// One instance of a source. [`source_connector!`](crate::source_connector) keeps them.
#[derive(Debug)]
pub struct SourceContainer<T: Source + Debug> {
    id: u32,
    // Shared with the poll loop while that runs.
    source: Lifecycle<Arc<T>>,
    task: Option<PollTask>,
    policy: Policy,
}

impl<T: Source + Debug + 'static> SourceContainer<T> {
    /// A place for the instance `id`.
    pub const fn new(id: u32) -> Self {
        Self { id, source: Lifecycle::Empty, task: None, policy: Policy::DEFAULT }
    }

    /// Makes the source from its configuration and state, and opens it.
    ///
    /// # Safety
    ///
    /// `config_ptr` must be valid for `config_len` bytes, `state_ptr` be null or valid for
    /// `state_len` bytes.
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn open<F, C>(
        &mut self,
        id: u32,
        config_ptr: *const u8,
        config_len: usize,
        state_ptr: *const u8,
        state_len: usize,
        log_callback: LogCallback,
        factory: F,
    ) -> i32
    where
        F: FnOnce(u32, C, Option<ConnectorState>) -> T,
        C: DeserializeOwned,
    {
        log::install(log_callback);
        // SAFETY: the caller promises it.
        let config = unsafe { edge::bytes(config_ptr, config_len) };
        let state = (!state_ptr.is_null()).then(|| {
            // SAFETY: the caller promises it.
            ConnectorState(unsafe { edge::bytes(state_ptr, state_len) }.to_vec())
        });
        self.source.open(
            id,
            || Some(Arc::new(factory(id, read_config(id, config)?, state))),
            async |source| sole_owner(source).open().await,
        )
    }

    /// Ends the poll loop, closes the source and drops it.
    ///
    /// # Safety
    ///
    /// None is needed; the signature is upstream's.
    pub unsafe fn close(&mut self) -> i32 {
        edge::guard(|| {
            if let Some(task) = self.task.take() {
                task.stop();
            }
            self.source.close(self.id, async |source| sole_owner(source).close().await)
        })
    }

    /// Starts the poll loop.
    ///
    /// # Safety
    ///
    /// `callback` must stay callable until `close` has returned.
    pub unsafe fn handle(&mut self, callback: SendCallback) -> i32 {
        #[cfg(level_head)]
        let sender = Sender::V2(callback);
        #[cfg(not(level_head))]
        let sender = Sender::V1(callback);
        self.start(sender)
    }

    /// Applies the result of a batch.
    #[doc(hidden)]
    pub fn complete_batch(&self, batch_id: u64, result: u8) -> i32 {
        let (Some(source), Some(task)) = (self.source.ready(), &self.task) else {
            return INVALID;
        };
        edge::guard(|| task.complete(source.as_ref(), batch_id, result))
    }

    pub(crate) fn start(&mut self, sender: Sender) -> i32 {
        let Some(source) = self.source.ready() else {
            return INVALID;
        };
        if self.task.is_some() {
            return INVALID;
        }
        edge::guard(|| {
            self.task = Some(PollTask::start(self.id, Arc::clone(source), sender, self.policy));
            edge::OK
        })
    }
}

/// The source before its poll loop starts, and after it has ended.
fn sole_owner<T>(source: &mut Arc<T>) -> &mut T {
    Arc::get_mut(source).expect("only a running poll loop shares the source")
}

/// What [`source_connector!`](crate::source_connector) exports.
impl<T: Source + Debug + 'static> Instances<SourceContainer<T>> {
    /// # Safety
    ///
    /// As [`SourceContainer::open`].
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn open<F, C>(
        &self,
        id: u32,
        config: *const u8,
        config_len: usize,
        state: *const u8,
        state_len: usize,
        log: LogCallback,
        factory: F,
    ) -> i32
    where
        F: FnOnce(u32, C, Option<ConnectorState>) -> T,
        C: DeserializeOwned,
    {
        self.insert(id, SourceContainer::new(id), |source| {
            // SAFETY: the caller promises it.
            unsafe { source.open(id, config, config_len, state, state_len, log, factory) }
        })
    }

    /// Starts a source of generation 1.
    pub fn handle(&self, id: u32, send: SendCallbackV1) -> i32 {
        self.write(id, |source| source.start(Sender::V1(send)))
    }

    /// Starts a source of generation 2.
    pub fn handle_v2(&self, id: u32, send: SendCallbackV2) -> i32 {
        self.write(id, |source| source.start(Sender::V2(send)))
    }

    /// Applies the result of a batch.
    pub fn batch_result(&self, id: u32, batch_id: u64, result: u8) -> i32 {
        self.read(id, |source| source.complete_batch(batch_id, result))
    }

    /// Frees the id.
    pub fn close(&self, id: u32) -> i32 {
        // SAFETY: nothing is asked for.
        self.remove(id, |source| unsafe { source.close() })
    }
}
