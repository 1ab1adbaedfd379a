// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Both directions of the border: foreign pointers come in, no panic goes out.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use tracing::error;

/// The work was done.
pub const OK: i32 = 0;
/// The call was right, the work behind it failed.
pub const FAILED: i32 = 1;
/// The call itself was wrong, or it panicked.
pub const INVALID: i32 = -1;

/// A panic was caught; [`log_panics`] has written its message and place.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs what is behind an exported function. A panic becomes [`INVALID`].
pub(crate) fn guard(call: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(INVALID)
}

/// Awaits code of the plugin's author. Whatever the panic left behind belongs to that author's
/// type, which has to cope with it, or is dropped.
pub(crate) async fn catch<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// Writes every panic of this library to its log, and with `RUST_BACKTRACE` set the way there.
/// The library has its own copy of the standard library, so the host's panics are not touched.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| error!("{}", describe(panic))));
}

fn describe(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    match backtrace.status() {
        BacktraceStatus::Captured => format!("panic at {place}: {message}\n{backtrace}"),
        _ => format!("panic at {place}: {message}"),
    }
}

/// The bytes behind a pointer of the host.
///
/// # Safety
///
/// `pointer` must be valid for `length` bytes for as long as the slice is used. With a length of 0
/// it may be anything.
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller promises it.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

/// Signals that a thread raises against itself.
#[cfg(unix)]
const FAULTS: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// Keeps signals away from the calling thread, which the plugin started: they are the host's.
/// Faults of the thread itself still reach their handlers.
#[cfg(unix)]
pub(crate) fn block_signals() {
    // SAFETY: sigfillset initialises the set, the other calls read and change it only.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigfillset(&mut signals);
        for fault in FAULTS {
            libc::sigdelset(&mut signals, fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
    }
}

#[cfg(not(unix))]
pub(crate) fn block_signals() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn threads_of_the_plugin_leave_signals_to_the_host_but_not_their_own_faults() {
        let status = crate::get_runtime().block_on(async {
            let read = tokio::spawn(async { std::fs::read_to_string("/proc/thread-self/status") });
            read.await.unwrap().unwrap()
        });
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
        let is_blocked = |signal: libc::c_int| blocked & (1 << (signal - 1)) != 0;
        for signal in [libc::SIGTERM, libc::SIGCHLD, libc::SIGUSR1, libc::SIGURG, libc::SIGPROF] {
            assert!(is_blocked(signal), "signal {signal}");
        }
        for fault in super::FAULTS {
            assert!(!is_blocked(fault), "signal {fault}");
        }
    }
}
