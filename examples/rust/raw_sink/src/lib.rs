// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! A sink from `connector.h` alone: bindgen reads the header, this file keeps its rules. It shows
//! what `iggy_connector_sdk` spares an author.
//!
//! It counts messages and bytes, and logs the totals of each instance when that is closed. There
//! is nothing to configure.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[allow(non_camel_case_types, dead_code)]
mod abi {
    include!(concat!(env!("OUT_DIR"), "/connector.rs"));
}
use abi::{IGGY_INVALID, IGGY_LOG_INFO, IGGY_OK, IGGY_SCHEMA_AVRO};

// The compiler finds a definition that differs from the header.
const _: abi::iggy_sink_open_fn = Some(iggy_sink_open);
const _: abi::iggy_sink_consume_fn = Some(iggy_sink_consume);
const _: abi::iggy_sink_close_fn = Some(iggy_sink_close);
const _: abi::iggy_sink_version_fn = Some(iggy_sink_version);

/// The totals of an instance, and where its log goes.
struct Counter {
    messages: u64,
    bytes: u64,
    log: abi::iggy_log_fn,
}

static COUNTERS: Mutex<BTreeMap<u32, Counter>> = Mutex::new(BTreeMap::new());

fn counters() -> MutexGuard<'static, BTreeMap<u32, Counter>> {
    COUNTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No panic may leave a function.
fn guard(call: impl FnOnce() -> i32 + std::panic::UnwindSafe) -> i32 {
    catch_unwind(call).unwrap_or(IGGY_INVALID)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn iggy_sink_open(
    id: u32,
    _config: *const u8,
    _config_len: usize,
    log: abi::iggy_log_fn,
) -> i32 {
    guard(|| {
        let mut counters = counters();
        if counters.contains_key(&id) {
            return IGGY_INVALID;
        }
        counters.insert(id, Counter { messages: 0, bytes: 0, log });
        IGGY_OK
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn iggy_sink_consume(
    id: u32,
    _topic: *const u8,
    _topic_len: usize,
    _metadata: *const u8,
    _metadata_len: usize,
    messages: *const u8,
    messages_len: usize,
) -> i32 {
    guard(|| {
        let batch = match messages_len {
            0 => &[],
            // SAFETY: the host passes that many bytes, and keeps them until the call returns.
            length => unsafe { std::slice::from_raw_parts(messages, length) },
        };
        let Some((messages, bytes)) = count(batch) else {
            return IGGY_INVALID;
        };
        let mut counters = counters();
        let Some(counter) = counters.get_mut(&id) else {
            return IGGY_INVALID;
        };
        counter.messages += messages;
        counter.bytes += bytes;
        IGGY_OK
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn iggy_sink_close(id: u32) -> i32 {
    guard(|| {
        let Some(counter) = counters().remove(&id) else {
            return IGGY_INVALID;
        };
        counter.log(&format!("{} messages, {} bytes", counter.messages, counter.bytes));
        IGGY_OK
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn iggy_sink_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

impl Counter {
    fn log(&self, text: &str) {
        let Some(log) = self.log else { return };
        let target = env!("CARGO_PKG_NAME");
        // SAFETY: the callback lives as long as the process; the strings outlive the call.
        unsafe {
            log(IGGY_LOG_INFO as u8, target.as_ptr(), target.len(), text.as_ptr(), text.len());
        }
    }
}

/// Messages and payload bytes of one RawMessages (`abi/wire.md`).
fn count(batch: &[u8]) -> Option<(u64, u64)> {
    let mut reader = Reader(batch);
    if reader.number()? > u64::from(IGGY_SCHEMA_AVRO) {
        return None; // a schema that this plugin does not know
    }
    let messages = reader.number()?;
    let mut bytes = 0;
    for _ in 0..messages {
        reader.skip_number()?; // the id, which has 128 bits
        for _offset_checksum_and_timestamps in 0..4 {
            reader.number()?;
        }
        let _headers = reader.bytes()?;
        bytes += reader.bytes()?.len() as u64;
    }
    Some((messages, bytes))
}

/// What is left of the input.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn skip_number(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| byte & 0x80 == 0)? + 1;
        self.0.split_off(..length)
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.skip_number()?.iter().rev();
        digits.copied().try_fold(0u64, |number, digit| {
            Some(number.checked_mul(0x80)? | u64::from(digit & 0x7f))
        })
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.0.split_off(..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn no_log(_: u8, _: *const u8, _: usize, _: *const u8, _: usize) {}

    fn consume(id: u32, batch: &[u8]) -> i32 {
        let empty = [0u8; 0].as_ptr();
        unsafe { iggy_sink_consume(id, empty, 0, empty, 0, batch.as_ptr(), batch.len()) }
    }

    #[test]
    fn messages_and_payload_bytes_are_counted() {
        let two =
            b"\x02\x02\x80\x01\x00\x00\x00\x00\x00\x02hi\x01\xac\x02\x00\x00\x00\x01\x00\x03abc";
        assert_eq!(count(b"\x00\x00"), Some((0, 0)));
        assert_eq!(count(two), Some((2, 5)));
        for length in 0..two.len() {
            assert_eq!(count(&two[..length]), None, "cut off at {length}");
        }
    }

    #[test]
    fn an_instance_lives_from_open_to_close() {
        unsafe {
            assert_eq!(consume(1, b"\x00\x00"), IGGY_INVALID);
            assert_eq!(iggy_sink_open(1, b"null".as_ptr(), 4, Some(no_log)), 0);
            assert_eq!(iggy_sink_open(1, b"null".as_ptr(), 4, Some(no_log)), IGGY_INVALID);
            assert_eq!(consume(1, b"\x00\x00"), 0);
            assert_eq!(consume(1, b"\x00\x01"), IGGY_INVALID);
            assert_eq!(iggy_sink_close(1), 0);
            assert_eq!(iggy_sink_close(1), IGGY_INVALID);
        }
    }
}
