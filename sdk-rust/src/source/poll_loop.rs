// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The task that polls a source and hands its batches over.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::sleep;
use tracing::{error, warn};

use super::delivery::{Delivery, Next, Policy};
use super::{Sender, SourceBatchResult};
use crate::edge::{self, INVALID, OK, Panicked};
use crate::{ProducedMessages, Source, get_runtime};

/// A running poll loop, as its owner sees it.
#[derive(Debug)]
pub(crate) struct PollTask {
    delivery: Arc<Delivery>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl PollTask {
    pub(crate) fn start<T: Source + 'static>(
        id: u32,
        source: Arc<T>,
        sender: Sender,
        policy: Policy,
    ) -> Self {
        let delivery = Arc::new(Delivery::new(id, policy));
        let (stop, stopped) = watch::channel(false);
        let poll_loop = PollLoop {
            id,
            source,
            sender,
            policy,
            delivery: Arc::clone(&delivery),
            stopped,
            batch_id: 1,
            panics: 0,
        };
        let running = get_runtime().spawn(poll_loop.run());
        Self { delivery, stop, running }
    }

    /// Ends the loop: a poll in progress is broken off, a batch without result is Nacked.
    pub(crate) fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = get_runtime().block_on(self.running) {
            error!("the poll loop did not end well: {error}");
        }
    }

    /// Applies a result on the host's thread.
    pub(crate) fn complete<T: Source>(&self, source: &T, batch_id: u64, code: u8) -> i32 {
        let result = SourceBatchResult::try_from(code);
        if result.is_err() {
            error!("batch {batch_id} got the unknown result {code}, it is taken as a Nack");
        }
        let applied = result.unwrap_or(SourceBatchResult::Nack);
        let going_on = get_runtime().block_on(self.delivery.complete(source, batch_id, applied));
        if going_on && result.is_ok() { OK } else { INVALID }
    }
}

struct PollLoop<T> {
    id: u32,
    source: Arc<T>,
    sender: Sender,
    policy: Policy,
    delivery: Arc<Delivery>,
    stopped: watch::Receiver<bool>,
    batch_id: u64,
    /// Panics of `poll` in a row.
    panics: u32,
}

impl<T: Source> PollLoop<T> {
    async fn run(mut self) {
        loop {
            let next = match self.poll().await {
                Ok(batch) => self.deliver(&batch).await,
                Err(next) => next,
            };
            match next {
                Next::Poll => {}
                Next::PollAfter(pause) => tokio::select! {
                    () = sleep(pause) => {}
                    () = stop(&mut self.stopped) => return,
                },
                Next::Stop => return,
            }
        }
    }

    async fn poll(&mut self) -> Result<ProducedMessages, Next> {
        let polled = tokio::select! {
            biased;
            () = stop(&mut self.stopped) => return Err(Next::Stop),
            polled = edge::catch(self.source.poll()) => polled,
        };
        match polled {
            Ok(Ok(batch)) => {
                self.panics = 0;
                Ok(batch)
            }
            Ok(Err(error)) => {
                error!("source with id {} failed to poll: {error}", self.id);
                // A poll that fails without awaiting must not keep the thread.
                tokio::task::yield_now().await;
                Err(Next::Poll)
            }
            Err(Panicked) => {
                self.panics = self.panics.saturating_add(1);
                let pause = self.policy.pause_after(self.panics);
                error!(
                    "source with id {} panicked in poll, it is polled again in {pause:?}",
                    self.id
                );
                Err(Next::PollAfter(pause))
            }
        }
    }

    async fn deliver(&mut self, batch: &ProducedMessages) -> Next {
        let bytes = match batch.encode() {
            Ok(bytes) => bytes,
            Err(error) => {
                error!("source with id {} cannot encode its batch: {error}", self.id);
                return self.apply(SourceBatchResult::Nack).await;
            }
        };
        // The host makes a callback wait when its queue is full: the worker's other tasks, those of
        // further instances among them, must be able to move on meanwhile.
        match self.sender {
            Sender::V1(send) => {
                block_in_place(|| send(self.id, bytes.as_ptr(), bytes.len()));
                self.apply(SourceBatchResult::Ack).await
            }
            Sender::V2(send) => {
                let batch_id = self.batch_id;
                self.batch_id += 1;
                let next = self.delivery.expect(batch_id);
                let code = block_in_place(|| send(self.id, batch_id, bytes.as_ptr(), bytes.len()));
                self.await_result(batch_id, code, next).await
            }
        }
    }

    async fn await_result(
        &mut self,
        batch_id: u64,
        code: i32,
        mut next: oneshot::Receiver<Next>,
    ) -> Next {
        if code == OK {
            tokio::select! {
                biased;
                next = &mut next => return next.unwrap_or(Next::Stop),
                () = stop(&mut self.stopped) => {}
                () = sleep(self.policy.result_timeout) => {
                    warn!("source with id {} got no result for batch {batch_id} in time", self.id);
                }
            }
        } else {
            warn!("the host refused batch {batch_id} of the source with id {}", self.id);
        }
        if self.delivery.withdraw() {
            self.apply(SourceBatchResult::Nack).await
        } else {
            // A result is being applied on the host's thread at this moment.
            next.await.unwrap_or(Next::Stop)
        }
    }

    async fn apply(&self, result: SourceBatchResult) -> Next {
        self.delivery.apply(self.source.as_ref(), result).await
    }
}

/// Waits for the order to stop. The owner is gone only when it has been given.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
