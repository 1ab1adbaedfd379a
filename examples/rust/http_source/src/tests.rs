// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use iggy_connector_sdk::get_runtime;
use iggy_connector_sdk::mock_host::{FAILED, MockSource, OK};
use iggy_connector_sdk::source::SourceBatchResult::{Ack, Nack};

use super::HttpSource;

/// A source on a free port, and its URL.
fn started(more: &str) -> (MockSource<HttpSource>, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(r#"{{"listen": "{port}"{more}}}"#);
    let mut source = MockSource::open(HttpSource::new, &config, None).unwrap();
    assert_eq!(source.start(), OK);
    (source, format!("http://{port}/hook"))
}

/// Posts in the background; the status arrives when it was answered.
fn post(url: &str, body: &'static str, signature: &str) -> Receiver<u16> {
    let (sender, answered) = channel();
    let request = reqwest::Client::new().post(url).header("x-hub-signature-256", signature);
    let send = request.body(body).send();
    get_runtime().spawn(async move {
        let _ = sender.send(send.await.unwrap().status().as_u16());
    });
    answered
}

#[test]
fn a_body_is_answered_when_its_batch_is_acknowledged_not_before() {
    let (source, url) = started("");
    let answered = post(&url, r#"{"a":1}"#, "");
    let batch = source.next_batch();
    assert_eq!(batch.messages.messages[0].payload, br#"{"a":1}"#);
    assert!(answered.try_recv().is_err());
    source.report(batch.id, Ack);
    assert_eq!(answered.recv(), Ok(202));
}

#[test]
fn a_sender_is_told_to_try_again_when_the_batch_failed_or_the_source_closes() {
    let (source, url) = started("");
    let answered = post(&url, "1", "");
    source.report(source.next_batch().id, Nack);
    assert_eq!(answered.recv(), Ok(503));

    let answered = post(&url, "2", "");
    source.next_batch();
    source.close();
    assert_ne!(answered.recv(), Ok(202));
}

#[test]
fn a_body_that_is_not_json_is_refused() {
    let (_source, url) = started("");
    for body in ["", "{", "{} {}"] {
        assert_eq!(post(&url, body, "").recv(), Ok(400), "{body}");
    }
}

#[test]
fn other_schemas_take_any_body() {
    let (source, url) = started(r#", "schema": "text""#);
    let answered = post(&url, "{", "");
    source.report(source.next_batch().id, Ack);
    assert_eq!(answered.recv(), Ok(202));
}

#[test]
fn a_body_with_a_wrong_signature_is_refused() {
    // The example of the documentation of GitHub's webhooks.
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let (source, url) =
        started(r#", "schema": "text", "hmac_secret": "It's a Secret to Everybody""#);
    for wrong in ["", "sha256=", "sha256=00", "757107", "sha256=é"] {
        assert_eq!(post(&url, "Hello, World!", wrong).recv(), Ok(401), "{wrong}");
    }
    assert_eq!(post(&url, "Hello, world!", signature).recv(), Ok(401));
    let answered = post(&url, "Hello, World!", signature);
    source.report(source.next_batch().id, Ack);
    assert_eq!(answered.recv(), Ok(202));
}

#[test]
fn an_address_in_use_fails_the_open() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(r#"{{"listen": "{}"}}"#, taken.local_addr().unwrap());
    assert_eq!(MockSource::open(HttpSource::new, &config, None).err(), Some(FAILED));
}
