// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Prints what it consumes.
//!
//! | Key of `plugin_config` | Default | Meaning |
//! |---|---|---|
//! | `print_payload` | `false` | a line for each message with its payload, not one for each batch |

use std::io::Write;

use async_trait::async_trait;
use iggy_connector_sdk::{
    ConsumedMessage, Error, MessagesMetadata, Sink, TopicMetadata, sink_connector,
};
use serde::Deserialize;

sink_connector!(StdoutSink);

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    print_payload: bool,
}

#[derive(Debug)]
struct StdoutSink {
    config: Config,
}

impl StdoutSink {
    // A connector without plugin_config is given `null`.
    fn new(_id: u32, config: Option<Config>) -> Self {
        Self { config: config.unwrap_or_default() }
    }

    /// The lines of a batch, to be written at once: batches are consumed side by side.
    fn lines(
        &self,
        topic: &TopicMetadata,
        metadata: &MessagesMetadata,
        messages: &[ConsumedMessage],
    ) -> Result<Vec<u8>, Error> {
        let source = format!("{}/{}/{}", topic.stream, topic.topic, metadata.partition_id);
        if !self.config.print_payload {
            return Ok(format!("{source}: {} messages\n", messages.len()).into_bytes());
        }
        let mut lines = Vec::new();
        for message in messages {
            lines.extend(format!("{source}@{}: ", message.offset).into_bytes());
            lines.extend(message.payload.try_to_bytes()?);
            lines.push(b'\n');
        }
        Ok(lines)
    }
}

#[async_trait]
impl Sink for StdoutSink {
    async fn open(&mut self) -> Result<(), Error> {
        Ok(())
    }

    async fn consume(
        &self,
        topic: &TopicMetadata,
        metadata: MessagesMetadata,
        messages: Vec<ConsumedMessage>,
    ) -> Result<(), Error> {
        let lines = self.lines(topic, &metadata, &messages)?;
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(&lines).and_then(|()| stdout.flush());
        written.map_err(|error| Error::CannotStoreData(error.to_string()))
    }

    async fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iggy_connector_sdk::mock_host::{MockSink, OK};
    use iggy_connector_sdk::{Payload, Schema};

    use super::*;

    #[test]
    fn batches_are_consumed_with_and_without_configuration() {
        for config in ["null", "{}", r#"{"print_payload": true}"#] {
            let sink = MockSink::open(StdoutSink::new, config).unwrap();
            assert_eq!(sink.consume("stream", "topic", Schema::Json, &[b"1", b"{}"]), OK);
        }
    }

    #[test]
    fn a_line_names_where_its_message_comes_from() {
        let sink = StdoutSink { config: Config { print_payload: true } };
        let topic = TopicMetadata { stream: "s".into(), topic: "t".into() };
        let metadata =
            MessagesMetadata { partition_id: 3, current_offset: 9, schema: Schema::Text };
        let message = ConsumedMessage {
            id: 1,
            offset: 7,
            checksum: 0,
            timestamp: 0,
            origin_timestamp: 0,
            headers: None,
            payload: Payload::Text("hello".into()),
        };
        assert_eq!(sink.lines(&topic, &metadata, &[message]).unwrap(), b"s/t/3@7: hello\n");
    }
}
