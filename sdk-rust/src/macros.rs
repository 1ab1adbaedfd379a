// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! From a type to a plugin.

/// Makes a plugin of a [`Sink`](crate::Sink): defines the functions of `connector.h`.
///
/// Use it once, in the root of the crate. The type implements `Debug` and has a constructor
/// `fn new(id: u32, config: C) -> Self` for a deserializable `C`.
#[macro_export]
macro_rules! sink_connector {
    ($type:ty) => {
        #[allow(unused_imports)]
        use $crate::connector_macro_support::in_scope_of_sinks::*;

        const _: fn() = || {
            fn is_sink<T: $crate::Sink + ::core::fmt::Debug>() {}
            is_sink::<$type>();
            let _ = <$type>::new;
        };

        #[cfg(not(test))]
        static IGGY_SINKS: $crate::connector_macro_support::Instances<
            $crate::sink::SinkContainer<$type>,
        > = $crate::connector_macro_support::Instances::new();

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn iggy_sink_open(
            id: u32,
            config: *const u8,
            config_len: usize,
            log: $crate::log::LogCallback,
        ) -> i32 {
            // SAFETY: the host keeps the rules of connector.h.
            unsafe { IGGY_SINKS.open(id, config, config_len, log, <$type>::new) }
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn iggy_sink_consume(
            id: u32,
            topic: *const u8,
            topic_len: usize,
            metadata: *const u8,
            metadata_len: usize,
            messages: *const u8,
            messages_len: usize,
        ) -> i32 {
            // SAFETY: the host keeps the rules of connector.h.
            unsafe {
                IGGY_SINKS.consume(
                    id,
                    topic,
                    topic_len,
                    metadata,
                    metadata_len,
                    messages,
                    messages_len,
                )
            }
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_sink_close(id: u32) -> i32 {
            IGGY_SINKS.close(id)
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_sink_version() -> *const ::core::ffi::c_char {
            ::core::concat!(::core::env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
        }
    };
}

/// Makes a plugin of a [`Source`](crate::Source): defines the functions of `connector.h`, those of
/// both generations.
///
/// Use it once, in the root of the crate. The type implements `Debug` and has a constructor
/// `fn new(id: u32, config: C, state: Option<ConnectorState>) -> Self` for a deserializable `C`.
#[macro_export]
macro_rules! source_connector {
    ($type:ty) => {
        #[allow(unused_imports)]
        use $crate::connector_macro_support::in_scope_of_sources::*;

        const _: fn() = || {
            fn is_source<T: $crate::Source + ::core::fmt::Debug>() {}
            is_source::<$type>();
            let _ = <$type>::new;
        };

        #[cfg(not(test))]
        static IGGY_SOURCES: $crate::connector_macro_support::Instances<
            $crate::source::SourceContainer<$type>,
        > = $crate::connector_macro_support::Instances::new();

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn iggy_source_open(
            id: u32,
            config: *const u8,
            config_len: usize,
            state: *const u8,
            state_len: usize,
            log: $crate::log::LogCallback,
        ) -> i32 {
            // SAFETY: the host keeps the rules of connector.h.
            unsafe {
                IGGY_SOURCES.open(id, config, config_len, state, state_len, log, <$type>::new)
            }
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_source_handle(
            id: u32,
            send: $crate::connector_macro_support::SendCallbackV1,
        ) -> i32 {
            IGGY_SOURCES.handle(id, send)
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_source_handle_v2(
            id: u32,
            send: $crate::connector_macro_support::SendCallbackV2,
        ) -> i32 {
            IGGY_SOURCES.handle_v2(id, send)
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_source_batch_result(id: u32, batch_id: u64, result: u8) -> i32 {
            IGGY_SOURCES.batch_result(id, batch_id, result)
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_source_close(id: u32) -> i32 {
            IGGY_SOURCES.close(id)
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        extern "C" fn iggy_source_version() -> *const ::core::ffi::c_char {
            ::core::concat!(::core::env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
        }
    };
}

/// What the macros need, and what they leave in scope.
#[doc(hidden)]
pub mod connector_macro_support {
    pub use crate::instances::Instances;
    pub use crate::source::{SendCallbackV1, SendCallbackV2};
    pub use dashmap::DashMap;
    #[cfg(not(level_head))]
    pub use once_cell::sync::Lazy;

    /// Upstream's macro leaves these names in the module that invokes it, and plugins have come to
    /// use them. As a glob they give way to what a plugin imports itself.
    pub mod in_scope_of_sinks {
        pub use super::DashMap;
        #[cfg(not(level_head))]
        pub use super::Lazy;
        pub use crate::log::LogCallback;
        pub use crate::sink::SinkContainer;
        #[cfg(level_head)]
        pub use std::sync::LazyLock;
    }

    /// As [`in_scope_of_sinks`].
    pub mod in_scope_of_sources {
        pub use super::DashMap;
        #[cfg(not(level_head))]
        pub use super::Lazy;
        pub use crate::log::LogCallback;
        pub use crate::source::{SendCallback, SourceContainer};
        #[cfg(level_head)]
        pub use std::sync::LazyLock;
    }
}
