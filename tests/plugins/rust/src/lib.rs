// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! A generation 1 source that runs as upstream's plugins do: one multi-threaded tokio
//! runtime for the library, a task for each instance, and a close that awaits the task on
//! the caller's thread. Each batch is the text `batch`.
//!
//! The configuration is a list of words: `signals` has tokio install handlers for SIGTERM
//! and SIGCHLD, `broken_socket` writes to a socket whose other end is closed before each batch.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinHandle;

type Log = extern "C" fn(u8, *const u8, usize, *const u8, usize);
type SendBatch = extern "C" fn(u32, *const u8, usize);

const OK: i32 = 0;
const INVALID: i32 = -1;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a tokio runtime"));
static INSTANCES: LazyLock<Mutex<HashMap<u32, Instance>>> = LazyLock::new(Mutex::default);

struct Instance {
    broken_socket: bool,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

fn log(callback: Log, message: &str) {
    let target = module_path!();
    callback(
        2,
        target.as_ptr(),
        target.len(),
        message.as_ptr(),
        message.len(),
    );
}

/// # Safety
/// `config` is `config_len` bytes.
#[no_mangle]
pub unsafe extern "C" fn iggy_source_open(
    id: u32,
    config: *const u8,
    config_len: usize,
    _state: *const u8,
    _state_len: usize,
    callback: Log,
) -> i32 {
    let Ok(config) = std::str::from_utf8(std::slice::from_raw_parts(config, config_len)) else {
        return INVALID;
    };
    let has = |word| config.split(' ').any(|other| other == word);
    if has("signals") {
        RUNTIME.block_on(install_handlers(callback));
    }
    let instance = Instance {
        broken_socket: has("broken_socket"),
        stop: watch::channel(false).0,
        task: None,
    };
    INSTANCES.lock().unwrap().insert(id, instance);
    OK
}

async fn install_handlers(callback: Log) {
    for (name, kind) in [
        ("SIGTERM", SignalKind::terminate()),
        ("SIGCHLD", SignalKind::child()),
    ] {
        let mut signals = signal(kind).expect("a signal handler");
        RUNTIME.spawn(async move {
            while signals.recv().await.is_some() {
                log(callback, &format!("received {name}"));
            }
        });
    }
}

#[no_mangle]
pub extern "C" fn iggy_source_handle(id: u32, send: SendBatch) -> i32 {
    let mut instances = INSTANCES.lock().unwrap();
    let Some(instance) = instances.get_mut(&id) else {
        return INVALID;
    };
    let task = produce(id, send, instance.broken_socket, instance.stop.subscribe());
    instance.task = Some(RUNTIME.spawn(task));
    OK
}

async fn produce(id: u32, send: SendBatch, broken_socket: bool, mut stop: watch::Receiver<bool>) {
    while tokio::time::timeout(Duration::from_millis(1), stop.changed())
        .await
        .is_err()
    {
        if broken_socket {
            write_to_broken_socket();
        }
        send(id, b"batch".as_ptr(), 5);
    }
}

fn write_to_broken_socket() {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    drop(theirs);
    assert!(ours.write(b"x").is_err());
}

#[no_mangle]
pub extern "C" fn iggy_source_close(id: u32) -> i32 {
    let Some(instance) = INSTANCES.lock().unwrap().remove(&id) else {
        return INVALID;
    };
    let _ = instance.stop.send(true);
    if let Some(task) = instance.task {
        let _ = RUNTIME.block_on(task);
    }
    OK
}

#[no_mangle]
pub extern "C" fn iggy_source_version() -> *const std::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
