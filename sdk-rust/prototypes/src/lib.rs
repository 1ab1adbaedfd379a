// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! What bindgen reads from `connector.h`, and what the SDK's macros define.

// They define nothing in a test build; the tests are a crate of their own.
#![cfg(not(test))]

/// Name and signature of each function of the ABI, as the invoking module knows it.
macro_rules! signatures {
    () => {
        $crate::signatures!(
            iggy_sink_open(_, _, _, _),
            iggy_sink_consume(_, _, _, _, _, _, _),
            iggy_sink_close(_),
            iggy_sink_version(),
            iggy_source_open(_, _, _, _, _, _),
            iggy_source_handle(_, _),
            iggy_source_close(_),
            iggy_source_version(),
            iggy_source_handle_v2(_, _),
            iggy_source_batch_result(_, _, _)
        )
    };
    ($($name:ident($($parameter:tt),*)),*) => {
        vec![$((
            stringify!($name),
            $crate::signature($name as unsafe extern "C" fn($($parameter),*) -> _),
        )),*]
    };
}
pub(crate) use signatures;

/// The signature of a function. A callback may be null in C and not in Rust, and calling a function
/// of a header is always unsafe; the bits are the same.
fn signature<F>(_function: F) -> String {
    let name = std::any::type_name::<F>().replace("->", "returns");
    name.replace("core::option::Option<", "").replace('>', "").replace("unsafe ", "")
}

/// The header, by bindgen.
#[allow(non_camel_case_types, missing_docs)]
pub mod header {
    include!(concat!(env!("OUT_DIR"), "/connector.rs"));

    /// The bindings' text.
    pub const TEXT: &str = include_str!(concat!(env!("OUT_DIR"), "/connector.rs"));

    /// Name and signature of each function that is declared.
    pub fn signatures() -> Vec<(&'static str, String)> {
        crate::signatures!()
    }
}

/// A library of both kinds.
pub mod plugin {
    use async_trait::async_trait;
    use iggy_connector_sdk::{
        ConnectorState, ConsumedMessage, Error, MessagesMetadata, ProducedMessages, Sink, Source,
        TopicMetadata, sink_connector, source_connector,
    };

    #[derive(Debug)]
    struct Idle;

    #[derive(Debug)]
    struct Hungry;

    impl Idle {
        fn new(_id: u32, _config: (), _state: Option<ConnectorState>) -> Self {
            Self
        }
    }

    impl Hungry {
        fn new(_id: u32, _config: ()) -> Self {
            Self
        }
    }

    #[async_trait]
    impl Source for Idle {
        async fn open(&mut self) -> Result<(), Error> {
            Ok(())
        }

        async fn poll(&self) -> Result<ProducedMessages, Error> {
            std::future::pending().await
        }

        async fn close(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    #[async_trait]
    impl Sink for Hungry {
        async fn open(&mut self) -> Result<(), Error> {
            Ok(())
        }

        async fn consume(
            &self,
            _topic: &TopicMetadata,
            _metadata: MessagesMetadata,
            _messages: Vec<ConsumedMessage>,
        ) -> Result<(), Error> {
            Ok(())
        }

        async fn close(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    source_connector!(Idle);
    sink_connector!(Hungry);

    /// Name and signature of each function that the macros define.
    pub fn signatures() -> Vec<(&'static str, String)> {
        crate::signatures!()
    }
}
