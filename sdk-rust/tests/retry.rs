// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The retry helpers against a service that answers what it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use iggy_connector_sdk::Error;
use iggy_connector_sdk::retry::{
    CircuitBreaker, ConnectivityConfig, build_retry_client, check_connectivity,
    check_connectivity_with_retry, exponential_backoff, is_transient_status, jitter,
    parse_duration, parse_retry_after,
};
use reqwest::{Body, Client, StatusCode, Url};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Gives each connection the next of the answers; an empty one is a connection that breaks.
/// The thread returns how many bodies it got, so a test also sees what was not asked.
fn service(answers: &'static [&'static str]) -> (Url, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let serve = move || {
        let connections = answers.iter().map(|answer| (answer, listener.accept().unwrap().0));
        connections.map(|(answer, connection)| exchange(connection, answer)).collect()
    };
    (url, std::thread::spawn(serve))
}

fn exchange(connection: TcpStream, answer: &str) -> String {
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if !answer.is_empty() {
        let head = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        reader.get_mut().write_all(head.as_bytes()).unwrap();
    }
    String::from_utf8(body).unwrap()
}

async fn post(url: Url, attempts: u32, delay: Duration) -> reqwest_middleware::Result<StatusCode> {
    let client = build_retry_client(Client::new(), attempts, delay, delay, "test");
    Ok(client.post(url).body("body").send().await?.status())
}

#[tokio::test]
async fn a_transient_answer_and_a_broken_connection_are_tried_again_with_the_same_body() {
    let (url, service) = service(&["503 Unavailable", "429 Slow down", "", "201 Created"]);
    assert_eq!(post(url, 10, MILLI).await.unwrap(), StatusCode::CREATED);
    assert_eq!(service.join().unwrap(), ["body"; 4]);
}

#[tokio::test]
async fn a_permanent_answer_is_returned_at_once() {
    let (url, service) = service(&["400 Bad"]);
    assert_eq!(post(url, 10, HOUR).await.unwrap(), StatusCode::BAD_REQUEST);
    service.join().unwrap();
}

#[tokio::test]
async fn the_number_of_attempts_includes_the_first() {
    let (url, service) = service(&["500 No", "500 No"]);
    assert_eq!(post(url, 2, MILLI).await.unwrap(), StatusCode::INTERNAL_SERVER_ERROR);
    service.join().unwrap();
}

#[tokio::test]
async fn the_pause_that_the_service_asks_for_wins_over_the_own_one() {
    let (url, service) = service(&["429 Slow down\r\nretry-after: 0", "200 OK"]);
    assert_eq!(post(url, 2, HOUR).await.unwrap(), StatusCode::OK);
    service.join().unwrap();
}

#[tokio::test]
async fn a_body_that_cannot_be_repeated_is_sent_once() {
    let (url, service) = service(&["503 Unavailable"]);
    let client = build_retry_client(Client::new(), 5, MILLI, MILLI, "test");
    let body = Body::wrap(UnrepeatableBody(Some("once")));
    let error = client.post(url).body(body).send().await.unwrap_err();
    assert!(error.is_middleware(), "{error}");
    service.join().unwrap();
}

/// A body that reqwest cannot clone.
struct UnrepeatableBody(Option<&'static str>);

impl http_body::Body for UnrepeatableBody {
    type Data = &'static [u8];
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        let text = self.0.take();
        std::task::Poll::Ready(text.map(|text| Ok(http_body::Frame::data(text.as_bytes()))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.map_or(0, |text| text.len() as u64))
    }
}

#[tokio::test]
async fn connectivity_is_a_get_that_is_answered_with_success() {
    let (url, service) = service(&["200 OK", "404 Not found"]);
    let client = Client::new();
    assert_eq!(check_connectivity(&client, url.clone(), "test").await, Ok(()));
    let error = check_connectivity(&client, url.clone(), "test").await.unwrap_err();
    assert!(matches!(&error, Error::Connection(reason) if reason.contains("404")), "{error}");
    service.join().unwrap();
    let gone = check_connectivity(&client, url, "test").await;
    assert!(matches!(gone, Err(Error::Connection(_))), "{gone:?}");
}

#[tokio::test]
async fn connectivity_is_tried_until_it_is_there_or_the_attempts_are_used_up() {
    let config = |attempts| ConnectivityConfig {
        max_open_retries: attempts,
        open_retry_max_delay: MILLI,
        retry_delay: MILLI,
    };
    let (url, service) = service(&["500 No", "500 No", "200 OK", "500 No"]);
    let client = Client::new();
    let check = async |attempts| {
        check_connectivity_with_retry(&client, url.clone(), "test", 1, &config(attempts)).await
    };
    assert_eq!(check(3).await, Ok(()));
    assert!(check(0).await.is_err(), "there is always one attempt");
    service.join().unwrap();
}

#[tokio::test]
async fn the_circuit_opens_after_failures_in_a_row_and_closes_after_the_cool_down() {
    let breaker = CircuitBreaker::new(2, HOUR);
    breaker.record_failure().await;
    breaker.record_success();
    breaker.record_failure().await;
    assert!(!breaker.is_open().await, "not in a row");
    breaker.record_failure().await;
    assert!(breaker.is_open().await);
    breaker.record_success();
    assert!(!breaker.is_open().await);

    let breaker = CircuitBreaker::new(1, Duration::ZERO);
    breaker.record_failure().await;
    assert!(!breaker.is_open().await, "cooled down");
}

#[test]
fn durations_are_read_and_what_cannot_be_read_is_a_second() {
    assert_eq!(parse_duration(Some("1m 30s"), "1h"), Duration::from_secs(90));
    assert_eq!(parse_duration(None, "250ms"), Duration::from_millis(250));
    assert_eq!(parse_duration(Some("soon"), "1h"), Duration::from_secs(1));
    assert_eq!(parse_duration(None, "later"), Duration::from_secs(1));
}

#[test]
fn backoff_doubles_up_to_its_ceiling() {
    let delays = [0, 1, 2, 3, 63, 64, u32::MAX]
        .map(|attempt| exponential_backoff(Duration::from_millis(100), attempt, HOUR));
    let wanted = [100, 200, 400, 800].map(Duration::from_millis);
    assert_eq!(delays[..4], wanted);
    assert_eq!(delays[4..], [HOUR; 3]);
}

#[test]
fn jitter_stays_within_a_fifth() {
    for _ in 0..1000 {
        let delay = jitter(Duration::from_millis(100)).as_millis();
        assert!((80..=120).contains(&delay), "{delay}");
    }
    for short in [Duration::ZERO, Duration::from_millis(4)] {
        assert_eq!(jitter(short), short);
    }
    jitter(Duration::MAX);
}

#[test]
fn retry_after_is_read_as_seconds() {
    assert_eq!(parse_retry_after(" 7 "), Some(Duration::from_secs(7)));
    for other in ["", "1.5", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        assert_eq!(parse_retry_after(other), None, "{other}");
    }
}

#[test]
fn too_many_requests_and_server_errors_are_transient() {
    for (status, transient) in [(429, true), (500, true), (503, true), (400, false), (200, false)] {
        assert_eq!(is_transient_status(StatusCode::from_u16(status).unwrap()), transient);
    }
}
