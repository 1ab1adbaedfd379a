// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! What becomes of the batch in flight.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{error, warn};

use super::SourceBatchResult;
use crate::edge::{self, Panicked};
use crate::{Source, retry};

/// Limits and times of generation 2; `connector.h` names them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) result_timeout: Duration,
    pub(crate) max_nacks: u32,
    pub(crate) backoff: Duration,
    pub(crate) max_backoff: Duration,
}

impl Policy {
    pub(crate) const DEFAULT: Self = Self {
        result_timeout: Duration::from_secs(30),
        max_nacks: 5,
        backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
    };

    /// The pause after this many failures in a row.
    pub(crate) fn pause_after(&self, failures: u32) -> Duration {
        retry::exponential_backoff(self.backoff, failures.saturating_sub(1), self.max_backoff)
    }
}

/// What the poll loop does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Poll,
    PollAfter(Duration),
    Stop,
}

/// The batch in flight and the record of those before it. Shared between the poll loop and
/// the host's threads that report results.
#[derive(Debug)]
pub(crate) struct Delivery {
    id: u32,
    policy: Policy,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    pending: Option<Pending>,
    /// Nacks in a row.
    nacks: u32,
}

#[derive(Debug)]
struct Pending {
    batch_id: u64,
    next: oneshot::Sender<Next>,
}

impl Delivery {
    pub(crate) fn new(id: u32, policy: Policy) -> Self {
        Self { id, policy, progress: Mutex::default() }
    }

    /// Notes a batch that is about to be sent. Its result may arrive before `send` returns.
    pub(crate) fn expect(&self, batch_id: u64) -> oneshot::Receiver<Next> {
        let (next, receiver) = oneshot::channel();
        self.lock().pending = Some(Pending { batch_id, next });
        receiver
    }

    /// Takes the batch off. False when its result has arrived: then `next` follows.
    pub(crate) fn withdraw(&self) -> bool {
        self.lock().pending.take().is_some()
    }

    /// Applies the result that the host reported. False when there is nothing to apply it to, or
    /// when the source has ended with it.
    pub(crate) async fn complete<S: Source>(
        &self,
        source: &S,
        batch_id: u64,
        result: SourceBatchResult,
    ) -> bool {
        let pending = self.lock().pending.take_if(|pending| pending.batch_id == batch_id);
        let Some(pending) = pending else {
            warn!(
                "source with id {} got a result for batch {batch_id}, which is not pending",
                self.id
            );
            return false;
        };
        let next = self.apply(source, result).await;
        pending.next.send(next).is_ok() && next != Next::Stop
    }

    /// Tells the source of the result and decides how to go on.
    pub(crate) async fn apply<S: Source>(&self, source: &S, result: SourceBatchResult) -> Next {
        match edge::catch(source.on_batch_result(result)).await {
            Ok(Ok(())) => self.count(result),
            Ok(Err(error)) => {
                error!("source with id {} ends, it could not apply {result:?}: {error}", self.id);
                Next::Stop
            }
            Err(Panicked) => {
                error!("source with id {} ends, it panicked at {result:?}", self.id);
                Next::Stop
            }
        }
    }

    fn count(&self, result: SourceBatchResult) -> Next {
        let nacks = {
            let mut progress = self.lock();
            progress.nacks = match result {
                SourceBatchResult::Ack => 0,
                SourceBatchResult::Nack => progress.nacks + 1,
            };
            progress.nacks
        };
        if nacks == 0 {
            return Next::Poll;
        }
        if nacks >= self.policy.max_nacks {
            error!("source with id {} ends after {nacks} Nacks in a row", self.id);
            return Next::Stop;
        }
        let pause = self.policy.pause_after(nacks);
        warn!("source with id {} got Nack {nacks} in a row, it polls again in {pause:?}", self.id);
        Next::PollAfter(pause)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // No code of the plugin's author runs under the lock, so poison says nothing.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
