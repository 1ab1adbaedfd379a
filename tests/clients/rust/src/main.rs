// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Checks of a server with the official Rust client: its high-level producer and consumer group, and every call of
//! its low-level API that the embedded broker serves.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use futures_util::StreamExt;
use iggy::prelude::*;
use tokio::time::timeout;

type Outcome = Result<(), Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(60);
const PARTITIONS: u32 = 4;
const COUNT: usize = 400;

fn address() -> String {
    std::env::var("IGGY_TEST_ADDRESS").expect("IGGY_TEST_ADDRESS names the server to check")
}

/// A name that no other run of the checks uses.
fn unique(name: &str) -> String {
    format!("rust-{name}-{}", std::process::id())
}

fn id(name: &str) -> Identifier {
    Identifier::named(name).expect("a name of the checks is valid")
}

/// Connects and logs in.
async fn client() -> Result<IggyClient, IggyError> {
    let client =
        IggyClient::from_connection_string(&format!("iggy+tcp://iggy:iggy@{}", address()))?;
    client.connect().await?;
    Ok(client)
}

/// Connects, logs in and creates a stream of that name with the topic `events`.
async fn client_with_topic(stream: &str) -> Result<IggyClient, IggyError> {
    let client = client().await?;
    client.create_stream(stream).await?;
    create_topic(&client, stream, "events").await?;
    Ok(client)
}

async fn create_topic(
    client: &IggyClient,
    stream: &str,
    topic: &str,
) -> Result<TopicDetails, IggyError> {
    client
        .create_topic(
            &id(stream),
            topic,
            PARTITIONS,
            CompressionAlgorithm::None,
            None,
            IggyExpiry::NeverExpire,
            MaxTopicSize::ServerDefault,
        )
        .await
}

fn message(payload: &str) -> Result<IggyMessage, IggyError> {
    IggyMessage::builder()
        .payload(payload.to_owned().into())
        .build()
}

/// Fails a check unless a call was refused for the expected reason.
fn refused<T>(result: Result<T, IggyError>, want: &str) -> Outcome {
    match result {
        Err(error) if error.as_string() == want => Ok(()),
        Err(error) => Err(format!("refused with {error:?}, want {want}").into()),
        Ok(_) => Err(format!("not refused, want {want}").into()),
    }
}

macro_rules! ensure {
    ($condition:expr) => {
        if !$condition {
            return Err(concat!("does not hold: ", stringify!($condition)).into());
        }
    };
}

async fn creates_lists_updates_and_deletes_streams() -> Outcome {
    let (name, renamed) = (unique("streams"), unique("renamed"));
    let client = client().await?;
    ensure!(client.get_stream(&id(&name)).await?.is_none());
    client.create_stream(&name).await?;
    refused(
        client.create_stream(&name).await,
        "stream_name_already_exists",
    )?;
    client.update_stream(&id(&name), &renamed).await?;
    let listed = client.get_streams().await?;
    ensure!(listed.iter().any(|stream| stream.name == renamed));
    client.delete_stream(&id(&renamed)).await?;
    ensure!(client.get_stream(&id(&renamed)).await?.is_none());
    Ok(())
}

async fn creates_lists_updates_and_deletes_topics() -> Outcome {
    let stream = unique("topics");
    let client = client_with_topic(&stream).await?;
    let topic = client
        .get_topic(&id(&stream), &id("events"))
        .await?
        .ok_or("no topic")?;
    ensure!(topic.partitions_count == PARTITIONS && topic.partitions.len() == PARTITIONS as usize);
    ensure!(
        client
            .get_topic(&id(&stream), &id("missing"))
            .await?
            .is_none()
    );
    client
        .create_partitions(&id(&stream), &id("events"), 2)
        .await?;
    client
        .delete_partitions(&id(&stream), &id("events"), 1)
        .await?;
    client
        .update_topic(
            &id(&stream),
            &id("events"),
            "renamed",
            CompressionAlgorithm::None,
            None,
            IggyExpiry::NeverExpire,
            MaxTopicSize::Unlimited,
        )
        .await?;
    let listed = client.get_topics(&id(&stream)).await?;
    ensure!(
        listed.len() == 1
            && listed[0].name == "renamed"
            && listed[0].partitions_count == PARTITIONS + 1
    );
    client.delete_topic(&id(&stream), &id("renamed")).await?;
    ensure!(client.get_topics(&id(&stream)).await?.is_empty());
    client.delete_stream(&id(&stream)).await?;
    Ok(())
}

async fn sends_and_polls_with_headers_and_offsets() -> Outcome {
    let stream = unique("messages");
    let client = client_with_topic(&stream).await?;
    let (stream, topic) = (id(&stream), id("events"));
    let (key, value) = (HeaderKey::from_str("kind")?, HeaderValue::from(7u32));
    let with_headers = IggyMessage::builder()
        .id(42)
        .payload("first".into())
        .user_headers([(key.clone(), value.clone())].into())
        .build()?;
    let mut batch = vec![with_headers, message("second")?];
    client
        .send_messages(&stream, &topic, &Partitioning::partition_id(1), &mut batch)
        .await?;

    let consumer = Consumer::new(Identifier::numeric(9)?);
    let polled = client
        .poll_messages(
            &stream,
            &topic,
            Some(1),
            &consumer,
            &PollingStrategy::first(),
            10,
            false,
        )
        .await?;
    ensure!(polled.partition_id == 1 && polled.current_offset == 1 && polled.messages.len() == 2);
    ensure!(polled.messages[0].header.id == 42 && polled.messages[1].header.id != 0);
    ensure!(
        polled.messages[0]
            .user_headers_map()?
            .ok_or("no headers")?
            .get(&key)
            == Some(&value)
    );

    ensure!(
        client
            .get_consumer_offset(&consumer, &stream, &topic, Some(1))
            .await?
            .is_none()
    );
    client
        .store_consumer_offset(&consumer, &stream, &topic, Some(1), 0)
        .await?;
    refused(
        client
            .store_consumer_offset(&consumer, &stream, &topic, Some(1), 9)
            .await,
        "invalid_offset",
    )?;
    let stored = client
        .get_consumer_offset(&consumer, &stream, &topic, Some(1))
        .await?
        .ok_or("no offset")?;
    ensure!(stored.stored_offset == 0 && stored.current_offset == 1);
    let next = client
        .poll_messages(
            &stream,
            &topic,
            Some(1),
            &consumer,
            &PollingStrategy::next(),
            10,
            true,
        )
        .await?;
    ensure!(next.messages.len() == 1 && next.messages[0].payload == "second");
    client
        .delete_consumer_offset(&consumer, &stream, &topic, Some(1))
        .await?;

    client
        .flush_unsaved_buffer(&stream, &topic, 1, false)
        .await?;
    client.delete_segments(&stream, &topic, 1, 0).await?;
    client.purge_topic(&stream, &topic).await?;
    client.purge_stream(&stream).await?;
    let purged = client.get_topic(&stream, &topic).await?.ok_or("no topic")?;
    ensure!(purged.messages_count == 0);
    client.delete_stream(&stream).await?;
    Ok(())
}

async fn creates_lists_and_deletes_groups() -> Outcome {
    let stream = unique("groups");
    let client = client_with_topic(&stream).await?;
    let (stream, topic, group) = (id(&stream), id("events"), id("readers"));
    ensure!(
        client
            .get_consumer_group(&stream, &topic, &group)
            .await?
            .is_none()
    );
    client
        .create_consumer_group(&stream, &topic, "readers")
        .await?;
    client.join_consumer_group(&stream, &topic, &group).await?;
    let details = client
        .get_consumer_group(&stream, &topic, &group)
        .await?
        .ok_or("no group")?;
    ensure!(
        details.members.len() == 1 && details.members[0].partitions.len() == PARTITIONS as usize
    );
    ensure!(client.get_me().await?.consumer_groups.len() == 1);
    ensure!(client.get_consumer_groups(&stream, &topic).await?.len() == 1);
    client.leave_consumer_group(&stream, &topic, &group).await?;
    client
        .delete_consumer_group(&stream, &topic, &group)
        .await?;
    client.delete_stream(&stream).await?;
    Ok(())
}

/// Adds what a consumer reads to `received`, until that holds `count` different messages.
async fn consume(
    consumer: &mut IggyConsumer,
    received: &mut BTreeSet<String>,
    count: usize,
) -> Outcome {
    while received.len() < count {
        let next = timeout(PATIENCE, consumer.next())
            .await?
            .ok_or("the consumer ended")??;
        received.insert(String::from_utf8(next.message.payload.to_vec())?);
    }
    Ok(())
}

fn consumer_of_group(client: &IggyClient, stream: &str) -> Result<IggyConsumer, IggyError> {
    Ok(client
        .consumer_group("readers", stream, "events")?
        .batch_length(10)
        .poll_interval(IggyDuration::from_str("1ms").expect("a valid duration"))
        .polling_strategy(PollingStrategy::next())
        .auto_commit(AutoCommit::When(AutoCommitWhen::ConsumingEachMessage))
        .create_consumer_group_if_not_exists()
        .auto_join_consumer_group()
        .build())
}

async fn producer_and_consumer_group_lose_nothing() -> Outcome {
    let stream = unique("pipeline");
    let client = client().await?;
    let producer = client
        .producer(&stream, "events")?
        .partitioning(Partitioning::balanced())
        .create_stream_if_not_exists()
        .create_topic_if_not_exists(
            PARTITIONS,
            None,
            IggyExpiry::NeverExpire,
            MaxTopicSize::ServerDefault,
        )
        .build();
    producer.init().await?;
    let sent: BTreeSet<String> = (0..COUNT).map(|i| i.to_string()).collect();
    for batch in sent.iter().collect::<Vec<_>>().chunks(20) {
        producer
            .send(
                batch
                    .iter()
                    .map(|payload| message(payload))
                    .collect::<Result<_, _>>()?,
            )
            .await?;
    }

    let mut consumer = consumer_of_group(&client, &stream)?;
    consumer.init().await?;
    let mut received = BTreeSet::new();
    consume(&mut consumer, &mut received, COUNT / 2).await?;
    consumer.shutdown().await?; // leaves the group; a second member reads the rest

    let second_client = self::client().await?;
    let mut second = consumer_of_group(&second_client, &stream)?;
    second.init().await?;
    consume(&mut second, &mut received, COUNT).await?;
    second.shutdown().await?;
    ensure!(received == sent);
    client.delete_stream(&id(&stream)).await?;
    Ok(())
}

async fn manages_users_and_tokens() -> Outcome {
    let name = unique("user");
    let client = client().await?;
    client
        .create_user(&name, "secret", UserStatus::Active, None)
        .await?;
    ensure!(
        client
            .get_users()
            .await?
            .iter()
            .any(|user| user.username == name)
    );
    client
        .change_password(&id(&name), "secret", "changed")
        .await?;
    client
        .update_user(&id(&name), None, Some(UserStatus::Inactive))
        .await?;
    let inactive = client.get_user(&id(&name)).await?.ok_or("no user")?;
    ensure!(inactive.status == UserStatus::Inactive);
    client.delete_user(&id(&name)).await?;

    let token = unique("token");
    let raw = client
        .create_personal_access_token(&token, PersonalAccessTokenExpiry::NeverExpire)
        .await?;
    ensure!(
        client
            .get_personal_access_tokens()
            .await?
            .iter()
            .any(|listed| listed.name == token)
    );
    let other = IggyClient::from_connection_string(&format!("iggy+tcp://iggy:iggy@{}", address()))?;
    other.connect().await?;
    other.logout_user().await?;
    other.login_with_personal_access_token(&raw.token).await?;
    other.get_streams().await?;
    client.delete_personal_access_token(&token).await?;
    refused(
        other.login_with_personal_access_token(&raw.token).await,
        "resource_not_found",
    )
}

async fn asks_about_the_server() -> Outcome {
    let client = client().await?;
    client.ping().await?;
    ensure!(client.get_stats().await?.clients_count >= 1);
    let me = client.get_me().await?;
    ensure!(
        client
            .get_clients()
            .await?
            .iter()
            .any(|other| other.client_id == me.client_id)
    );
    ensure!(
        client
            .get_client(me.client_id)
            .await?
            .ok_or("no client")?
            .address
            == me.address
    );
    ensure!(client.get_cluster_metadata().await?.nodes.len() == 1);
    Ok(())
}

/// Runs checks one after another and prints a line for each.
macro_rules! run {
    ($($check:ident),* $(,)?) => {{
        let mut failed = false;
        $(
            let name = stringify!($check).replace('_', " ");
            let outcome = match timeout(PATIENCE, $check()).await {
                Ok(outcome) => outcome,
                Err(_) => Err("took too long".into()),
            };
            match outcome {
                Ok(()) => println!("ok rust: {name}"),
                Err(error) => {
                    failed = true;
                    println!("FAILED rust: {name}: {error}");
                }
            }
        )*
        failed
    }};
}

#[tokio::main]
async fn main() -> ExitCode {
    let failed = run!(
        creates_lists_updates_and_deletes_streams,
        creates_lists_updates_and_deletes_topics,
        sends_and_polls_with_headers_and_offsets,
        creates_lists_and_deletes_groups,
        producer_and_consumer_group_lose_nothing,
        manages_users_and_tokens,
        asks_about_the_server,
    );
    ExitCode::from(u8::from(failed))
}
