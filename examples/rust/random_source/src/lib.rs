// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Produces random JSON records.
//!
//! | Key of `plugin_config` | Default | Meaning |
//! |---|---|---|
//! | `interval` | `1s` | pause before each batch |
//! | `max_count` | none | number of records after which it falls silent |
//! | `messages_range` | `[10, 50]` | least and most records of a batch |
//! | `payload_size` | `100` | length of the random text in a record |

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use iggy_connector_sdk::retry::parse_duration;
use iggy_connector_sdk::source::SourceBatchResult;
use iggy_connector_sdk::{
    ConnectorState, Error, ProducedMessage, ProducedMessages, Schema, Source, source_connector,
};
use serde::{Deserialize, Serialize};

source_connector!(RandomSource);

const NAME: &str = "random_source";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    interval: Option<String>,
    max_count: Option<u64>,
    messages_range: Option<(u64, u64)>,
    payload_size: Option<usize>,
}

/// What survives a restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct State {
    produced: u64,
}

#[derive(Debug, Serialize)]
struct Record {
    number: u64,
    text: String,
}

#[derive(Debug)]
struct RandomSource {
    id: u32,
    interval: Duration,
    max_count: u64,
    batch: (u64, u64),
    payload_size: usize,
    state_is_broken: bool,
    progress: Mutex<Progress>,
}

/// Records count once they are acknowledged; until then they may have to be produced again.
#[derive(Debug)]
struct Progress {
    acknowledged: State,
    in_flight: State,
}

/// `None`: it was not written by this plugin. An empty one is a fresh start, as none is.
fn read_state(id: u32, state: Option<ConnectorState>) -> Option<State> {
    match state {
        Some(state) if !state.0.is_empty() => state.deserialize(NAME, id),
        _ => Some(State::default()),
    }
}

impl RandomSource {
    fn new(id: u32, config: Option<Config>, state: Option<ConnectorState>) -> Self {
        let config = config.unwrap_or_default();
        let read = read_state(id, state);
        let state = read.unwrap_or_default();
        Self {
            id,
            interval: parse_duration(config.interval.as_deref(), "1s"),
            max_count: config.max_count.unwrap_or(u64::MAX),
            batch: config.messages_range.unwrap_or((10, 50)),
            payload_size: config.payload_size.unwrap_or(100),
            state_is_broken: read.is_none(),
            progress: Mutex::new(Progress { acknowledged: state, in_flight: state }),
        }
    }

    fn produce(&self, number: u64) -> Result<ProducedMessage, Error> {
        let text = std::iter::repeat_with(fastrand::alphanumeric).take(self.payload_size).collect();
        let payload = serde_json::to_vec(&Record { number, text })
            .map_err(|error| Error::Serialization(error.to_string()))?;
        Ok(ProducedMessage {
            id: None,
            checksum: None,
            timestamp: None,
            origin_timestamp: None,
            headers: None,
            payload,
        })
    }
}

#[async_trait]
impl Source for RandomSource {
    async fn open(&mut self) -> Result<(), Error> {
        if self.state_is_broken {
            return Err(Error::InvalidState); // rather than produce everything again
        }
        let (least, most) = self.batch;
        if least <= most { Ok(()) } else { Err(Error::InvalidConfigValue("messages_range".into())) }
    }

    async fn poll(&self) -> Result<ProducedMessages, Error> {
        tokio::time::sleep(self.interval).await;
        let first = self.progress.lock().unwrap().acknowledged.produced;
        if first >= self.max_count {
            return std::future::pending().await;
        }
        let count = fastrand::u64(self.batch.0..=self.batch.1).min(self.max_count - first);
        let numbers = first..first + count;
        let state = State { produced: numbers.end };
        self.progress.lock().unwrap().in_flight = state;
        Ok(ProducedMessages {
            schema: Schema::Json,
            messages: numbers.map(|number| self.produce(number)).collect::<Result<_, _>>()?,
            state: ConnectorState::serialize(&state, NAME, self.id),
        })
    }

    async fn on_batch_result(&self, result: SourceBatchResult) -> Result<(), Error> {
        let mut progress = self.progress.lock().unwrap();
        if result == SourceBatchResult::Ack {
            progress.acknowledged = progress.in_flight;
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iggy_connector_sdk::mock_host::{Batch, FAILED, MockSource, OK};
    use iggy_connector_sdk::source::SourceBatchResult::{Ack, Nack};

    use super::*;

    const CONFIG: &str = r#"{"interval": "1ms", "messages_range": [3, 3], "max_count": 5}"#;

    fn numbers(batch: &Batch) -> Vec<u64> {
        let messages = batch.messages.messages.iter();
        let read = |m: &ProducedMessage| serde_json::from_slice::<serde_json::Value>(&m.payload);
        messages.map(|message| read(message).unwrap()["number"].as_u64().unwrap()).collect()
    }

    #[test]
    fn records_come_again_after_a_nack_and_end_at_the_maximum() {
        let mut source = MockSource::open(RandomSource::new, CONFIG, None).unwrap();
        source.start();
        for (result, wanted) in [(Nack, &[0, 1, 2][..]), (Ack, &[0, 1, 2]), (Ack, &[3, 4])] {
            let batch = source.next_batch();
            assert_eq!(numbers(&batch), wanted);
            assert_eq!(source.report(batch.id, result), OK);
        }
        assert!(source.batch_within(Duration::from_millis(50)).is_none());
    }

    #[test]
    fn a_restart_goes_on_where_the_stored_state_says() {
        let state = ConnectorState::serialize(&State { produced: 4 }, NAME, 0);
        let mut source = MockSource::open(RandomSource::new, CONFIG, state.as_ref()).unwrap();
        source.start();
        assert_eq!(numbers(&source.next_batch()), [4]);
    }

    #[test]
    fn a_broken_state_is_refused_and_an_empty_one_a_fresh_start() {
        for (state, wanted) in [(vec![0xc1], Some(FAILED)), (vec![], None)] {
            let opened = MockSource::open(RandomSource::new, CONFIG, Some(&ConnectorState(state)));
            assert_eq!(opened.err(), wanted);
        }
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        let refused = MockSource::open(RandomSource::new, r#"{"messages_range": [2, 1]}"#, None);
        assert_eq!(refused.err(), Some(FAILED));
    }
}
