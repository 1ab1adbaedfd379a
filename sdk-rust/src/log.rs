// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The plugin's log goes to the host.

use std::fmt;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::{EnvFilter, Registry};

/// Writes one log record in the host: level (0 trace to 4 error), target, message.
pub type LogCallback = extern "C" fn(u8, *const u8, usize, *const u8, usize);

/// Hands the records of `tracing` to the host.
pub struct CallbackLayer {
    callback: LogCallback,
}

impl CallbackLayer {
    /// A layer that writes through `callback`.
    pub fn new(callback: LogCallback) -> Self {
        Self { callback }
    }
}

impl<S: Subscriber> Layer<S> for CallbackLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut text = MessageText::default();
        event.record(&mut text);
        let target = event.metadata().target();
        (self.callback)(
            level_code(*event.metadata().level()),
            target.as_ptr(),
            target.len(),
            text.0.as_ptr(),
            text.0.len(),
        );
    }
}

fn level_code(level: Level) -> u8 {
    match level {
        Level::TRACE => 0,
        Level::DEBUG => 1,
        Level::INFO => 2,
        Level::WARN => 3,
        Level::ERROR => 4,
    }
}

/// The field `message`, or the first field that is not empty where a record has none.
#[derive(Default)]
struct MessageText(String);

impl MessageText {
    fn take(&mut self, field: &Field, text: impl FnOnce() -> String) {
        if field.name() == "message" || self.0.is_empty() {
            self.0 = text();
        }
    }
}

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, || format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, || value.to_owned());
    }
}

/// Sends the log of this library to the host. Only the first call counts: all instances share
/// the process's log, and a host passes the same callback each time.
pub(crate) fn install(callback: LogCallback) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let filter =
            EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy();
        let subscriber = Registry::default().with(filter).with(CallbackLayer::new(callback));
        // It fails in tests of a plugin that brought their own subscriber, which then keeps it.
        let _ = tracing::subscriber::set_global_default(subscriber);
        crate::edge::log_panics();
    });
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static RECORDS: RefCell<Vec<(u8, String, String)>> = const { RefCell::new(Vec::new()) };
    }

    extern "C" fn record(level: u8, target: *const u8, t_len: usize, text: *const u8, len: usize) {
        // SAFETY: the layer passes the bytes of two strings that outlive the call.
        let text_of = |bytes, len| unsafe {
            String::from_utf8_lossy(std::slice::from_raw_parts(bytes, len)).into_owned()
        };
        let record = (level, text_of(target, t_len), text_of(text, len));
        RECORDS.with_borrow_mut(|records| records.push(record));
    }

    fn records_of(log: impl FnOnce()) -> Vec<(u8, String, String)> {
        let subscriber = Registry::default().with(CallbackLayer::new(record));
        tracing::subscriber::with_default(subscriber, log);
        RECORDS.take()
    }

    #[test]
    fn each_level_has_its_code() {
        let records = records_of(|| {
            tracing::trace!(target: "place", "a");
            tracing::debug!(target: "place", "b");
            tracing::info!(target: "place", "c");
            tracing::warn!(target: "place", "d");
            tracing::error!(target: "place", "e {}", 1);
        });
        let expected = [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e 1")]
            .map(|(level, text)| (level, "place".to_owned(), text.to_owned()));
        assert_eq!(records, expected);
    }

    #[test]
    fn the_message_wins_over_fields_and_the_first_filled_field_stands_in_for_it() {
        let records = records_of(|| {
            tracing::info!(cause = "x", "message");
            tracing::info!(empty = "", first = 7, second = "y");
        });
        let texts: Vec<_> = records.into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(texts, ["message", "7"]);
    }
}
