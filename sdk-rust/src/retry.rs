// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Helpers for connectors that talk to a service which is not always there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response, StatusCode, Url};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::Error;

/// Keeps away from a service for a while after it failed several times in a row.
#[derive(Debug)]
pub struct CircuitBreaker {
    threshold: u32,
    cool_down: Duration,
    circuit: Mutex<Circuit>,
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    opened_at: Option<Instant>,
}

impl CircuitBreaker {
    /// Opens for `cool_down` after `threshold` failures in a row.
    pub fn new(threshold: u32, cool_down: Duration) -> Self {
        Self { threshold, cool_down, circuit: Mutex::default() }
    }

    /// Notes a success: the count of failures is 0 again.
    pub fn record_success(&self) {
        *self.lock() = Circuit::default();
    }

    /// Notes a failure.
    pub async fn record_failure(&self) {
        let mut circuit = self.lock();
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures >= self.threshold {
            circuit.opened_at = Some(Instant::now());
        }
    }

    /// Whether to keep away. After the cool-down it counts from 0 again.
    pub async fn is_open(&self) -> bool {
        let mut circuit = self.lock();
        let Some(opened_at) = circuit.opened_at else {
            return false;
        };
        let open = opened_at.elapsed() < self.cool_down;
        if !open {
            *circuit = Circuit::default();
        }
        open
    }

    fn lock(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a duration such as `1m 30s`, or `default_value` where there is none. What cannot be read
/// counts as one second.
pub fn parse_duration(value: Option<&str>, default_value: &str) -> Duration {
    let text = value.unwrap_or(default_value);
    humantime::parse_duration(text).unwrap_or_else(|error| {
        if value.is_some() {
            warn!("the duration {text:?} cannot be read, 1s is used: {error}");
        }
        Duration::from_secs(1)
    })
}

/// Spreads a delay by up to a fifth in both directions, so that many clients do not return at the
/// same moment. Delays under 5 ms stay as they are.
pub fn jitter(base: Duration) -> Duration {
    let millis = whole_millis(base);
    let spread = millis / 5;
    if spread == 0 {
        return base;
    }
    Duration::from_millis(fastrand::u64(millis - spread..=millis.saturating_add(spread)))
}

/// `base` doubled `attempt` times, `max_delay` at most.
pub fn exponential_backoff(base: Duration, attempt: u32, max_delay: Duration) -> Duration {
    let factor = 2u64.saturating_pow(attempt);
    Duration::from_millis(whole_millis(base).saturating_mul(factor)).min(max_delay)
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a `Retry-After` header that gives seconds. The other form, a date, is `None`.
pub fn parse_retry_after(value: &str) -> Option<Duration> {
    value.trim().parse().ok().map(Duration::from_secs)
}

/// Whether the same request may succeed later.
pub fn is_transient_status(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// Repeats requests that failed in transit or were answered with a transient status.
#[derive(Debug, Clone)]
pub struct HttpRetryMiddleware {
    max_attempts: u32,
    retry_delay: Duration,
    max_delay: Duration,
    log_prefix: &'static str,
}

impl HttpRetryMiddleware {
    /// `max_retries` counts every attempt, the first one included.
    pub fn new(
        max_retries: u32,
        retry_delay: Duration,
        max_delay: Duration,
        log_prefix: &'static str,
    ) -> Self {
        Self { max_attempts: max_retries, retry_delay, max_delay, log_prefix }
    }

    fn pause_after(&self, attempt: u32, result: &reqwest_middleware::Result<Response>) -> Duration {
        let asked_for = result.as_ref().ok().and_then(asked_pause);
        asked_for.unwrap_or_else(|| {
            jitter(exponential_backoff(self.retry_delay, attempt, self.max_delay))
        })
    }
}

#[async_trait]
impl Middleware for HttpRetryMiddleware {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        for attempt in 1.. {
            let repeat = request.try_clone();
            let result = next.clone().run(request, extensions).await;
            let Some(reason) = reason_to_repeat(&result).filter(|_| attempt < self.max_attempts)
            else {
                return result;
            };
            let Some(repeat) = repeat else {
                result?;
                return Err(reqwest_middleware::Error::Middleware(
                    Error::HttpRequestFailed(format!(
                        "{reason}, and the body cannot be sent again"
                    ))
                    .into(),
                ));
            };
            let pause = self.pause_after(attempt, &result);
            warn!("{}: attempt {attempt} failed, next in {pause:?}: {reason}", self.log_prefix);
            sleep(pause).await;
            request = repeat;
        }
        unreachable!("the last attempt returns its result")
    }
}

/// Why an attempt should be followed by another, if it should.
fn reason_to_repeat(result: &reqwest_middleware::Result<Response>) -> Option<String> {
    match result {
        Ok(response) => is_transient_status(response.status())
            .then(|| format!("the service answered {}", response.status())),
        Err(reqwest_middleware::Error::Reqwest(error)) => Some(error.to_string()),
        Err(reqwest_middleware::Error::Middleware(_)) => None,
    }
}

/// The pause that a service asks for when it is asked too often.
fn asked_pause(response: &Response) -> Option<Duration> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let value = response.headers().get(http::header::RETRY_AFTER)?;
    parse_retry_after(value.to_str().ok()?)
}

/// Wraps a client with [`HttpRetryMiddleware`].
pub fn build_retry_client(
    client: reqwest::Client,
    max_retries: u32,
    retry_delay: Duration,
    max_delay: Duration,
    log_prefix: &'static str,
) -> ClientWithMiddleware {
    ClientBuilder::new(client)
        .with(HttpRetryMiddleware::new(max_retries, retry_delay, max_delay, log_prefix))
        .build()
}

/// How hard [`check_connectivity_with_retry`] tries.
#[derive(Debug, Clone)]
pub struct ConnectivityConfig {
    /// Attempts in all; there is always one.
    pub max_open_retries: u32,
    /// The longest pause between two attempts.
    pub open_retry_max_delay: Duration,
    /// The base of the pauses.
    pub retry_delay: Duration,
}

/// Asks once whether the service is there.
///
/// # Errors
///
/// [`Error::Connection`] when the request fails or is not answered with success.
pub async fn check_connectivity(
    client: &reqwest::Client,
    url: Url,
    connector_label: &str,
) -> Result<(), Error> {
    let answer = client.get(url).send().await;
    let status = answer.map_err(|error| unreachable_service(connector_label, &error))?.status();
    if status.is_success() {
        Ok(())
    } else {
        Err(unreachable_service(connector_label, &format!("the service answered {status}")))
    }
}

fn unreachable_service(connector_label: &str, reason: &dyn std::fmt::Display) -> Error {
    Error::Connection(format!("{connector_label}: connectivity check failed: {reason}"))
}

/// Asks several times, with a growing pause between.
///
/// # Errors
///
/// That of the last attempt.
pub async fn check_connectivity_with_retry(
    client: &reqwest::Client,
    url: Url,
    connector_label: &str,
    connector_id: u32,
    cfg: &ConnectivityConfig,
) -> Result<(), Error> {
    for attempt in 1.. {
        let result = check_connectivity(client, url.clone(), connector_label).await;
        let Err(error) = &result else {
            if attempt > 1 {
                info!("{connector_label} with id {connector_id} is connected at attempt {attempt}");
            }
            return result;
        };
        if attempt >= cfg.max_open_retries {
            return result;
        }
        let backoff = exponential_backoff(cfg.retry_delay, attempt, cfg.open_retry_max_delay);
        let pause = jitter(backoff);
        warn!(
            "{connector_label} with id {connector_id}: attempt {attempt}, next in {pause:?}: {error}"
        );
        sleep(pause).await;
    }
    unreachable!("the last attempt returns its result")
}
