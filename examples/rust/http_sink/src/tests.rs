// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use iggy_connector_sdk::Schema;
use iggy_connector_sdk::mock_host::{FAILED, INVALID, MockSink, OK};
use serde_json::{Value, json};

use super::HttpSink;

/// Answers each request with the next status and returns the bodies.
fn service(statuses: &'static [u16]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serve = move || {
        let exchange = |status| {
            let mut reader = BufReader::new(listener.accept().unwrap().0);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {status} -\r\nconnection: close\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            String::from_utf8(body).unwrap()
        };
        statuses.iter().map(exchange).collect()
    };
    (url, std::thread::spawn(serve))
}

fn consume(config: Value, schema: Schema, payloads: &[&[u8]]) -> i32 {
    let sink = MockSink::open(HttpSink::new, &config.to_string()).unwrap();
    sink.consume("stream", "topic", schema, payloads)
}

#[test]
fn each_message_is_a_request_with_its_metadata() {
    let (url, service) = service(&[200, 204]);
    assert_eq!(consume(json!({ "url": url }), Schema::Json, &[br#"{"a":1}"#, b"2"]), OK);
    let bodies = service.join().unwrap();
    let first: Value = serde_json::from_str(&bodies[0]).unwrap();
    assert_eq!(first["payload"], json!({ "a": 1 }));
    assert_eq!(first["metadata"]["iggy_topic"], "topic");
    assert_eq!(bodies.len(), 2);
}

#[test]
fn a_batch_is_one_request_where_that_is_wanted() {
    for (mode, wanted) in [("ndjson", "1\n\"x\"\n"), ("json_array", "[1,\"x\"]")] {
        let (url, service) = service(&[201]);
        let config = json!({ "url": url, "batch_mode": mode, "include_metadata": false });
        assert_eq!(consume(config, Schema::Json, &[b"1", br#""x""#]), OK);
        assert_eq!(service.join().unwrap(), [wanted]);
    }
}

#[test]
fn raw_bytes_arrive_as_they_are() {
    let (url, service) = service(&[200]);
    assert_eq!(consume(json!({ "url": url, "batch_mode": "raw" }), Schema::Raw, &[b"bytes"]), OK);
    assert_eq!(service.join().unwrap(), ["bytes"]);
}

#[test]
fn a_busy_service_is_asked_again_and_a_refusal_fails_the_batch() {
    let (url, service) = service(&[503, 200, 400]);
    let config = json!({ "url": url, "retry_delay": "1ms" });
    assert_eq!(consume(config, Schema::Text, &[b"a", b"b", b"c"]), FAILED);
    assert_eq!(service.join().unwrap().len(), 3);
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    for (config, code) in [
        ("{}", INVALID),
        (r#"{"url": "nowhere"}"#, FAILED),
        (r#"{"url": "http://x/", "method": "NO WAY"}"#, FAILED),
        (r#"{"url": "http://x/", "headers": {"a b": ""}}"#, FAILED),
        (r#"{"url": "http://x/", "batch_mode": "all"}"#, INVALID),
    ] {
        assert_eq!(MockSink::open(HttpSink::new, config).err(), Some(code), "{config}");
    }
}
