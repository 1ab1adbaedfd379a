# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

"""Checks of a server with the official Python client. It can neither list nor delete streams and topics."""

import asyncio
import datetime
import os
import sys
import traceback

from apache_iggy import AutoCommit, AutoCommitWhen, IggyClient, PollingStrategy, SendMessage

ADDRESS = os.environ["IGGY_TEST_ADDRESS"]
STREAM = f"python-{os.getpid()}"
TOPIC = "events"
PARTITIONS = 4
COUNT = 100
PATIENCE = 60


async def client():
    """Connects and logs in."""
    connected = IggyClient(ADDRESS)
    await connected.connect()
    await connected.login_user("iggy", "iggy")
    return connected


async def pings_and_logs_in():
    await (await client()).ping()


async def is_refused_with_a_wrong_password():
    connected = IggyClient(ADDRESS)
    await connected.connect()
    try:
        await connected.login_user("iggy", "wrong-password")
    except Exception:
        return
    raise AssertionError("a wrong password was accepted")


async def logs_in_by_connection_string():
    connected = IggyClient.from_connection_string(f"iggy+tcp://iggy:iggy@{ADDRESS}")
    await connected.connect()
    assert await connected.get_stream("missing") is None


async def creates_a_stream_and_a_topic():
    connected = await client()
    await connected.create_stream(STREAM)
    await connected.create_topic(STREAM, TOPIC, PARTITIONS)
    stream = await connected.get_stream(STREAM)
    assert (stream.name, stream.topics_count) == (STREAM, 1), stream
    topic = await connected.get_topic(STREAM, TOPIC)
    assert (topic.name, topic.partitions_count) == (TOPIC, PARTITIONS), topic
    assert await connected.get_topic(STREAM, "missing") is None


async def is_refused_a_stream_that_exists():
    try:
        await (await client()).create_stream(STREAM)
    except Exception:
        return
    raise AssertionError("a stream was created twice")


def sent(partition):
    return [f"{partition}-{i}".encode() for i in range(COUNT)]


async def produces():
    connected = await client()
    for partition in range(PARTITIONS):
        await connected.send_messages(STREAM, TOPIC, partition, [SendMessage(data) for data in sent(partition)])
    assert (await connected.get_topic(STREAM, TOPIC)).messages_count == PARTITIONS * COUNT


async def polls_with_every_strategy():
    connected = await client()

    async def poll(strategy, count):
        polled = await connected.poll_messages(STREAM, TOPIC, 1, strategy, count, False)
        return [(m.offset(), m.payload()) for m in polled]

    everything = list(enumerate(sent(1)))
    assert await poll(PollingStrategy.First(), COUNT) == everything
    assert await poll(PollingStrategy.Next(), 3) == everything[:3]
    assert await poll(PollingStrategy.Last(), 3) == everything[-3:]
    assert await poll(PollingStrategy.Offset(value=7), 2) == everything[7:9]
    assert await poll(PollingStrategy.Timestamp(value=0), 2) == everything[:2]


async def join(connected, group):
    return await connected.consumer_group(
        group,
        STREAM,
        TOPIC,
        batch_length=10,
        polling_strategy=PollingStrategy.Next(),
        auto_commit=AutoCommit.When(AutoCommitWhen.ConsumingEachMessage()),
        poll_interval=datetime.timedelta(milliseconds=1),
    )


async def two_members_consume_everything_once():
    seen = []
    members = [await join(await client(), "readers") for _ in range(2)]
    done = asyncio.Event()

    async def note(message):
        seen.append(message.payload())
        if len(seen) == PARTITIONS * COUNT:
            done.set()

    tasks = [asyncio.ensure_future(member.consume_messages(note, done)) for member in members]
    await asyncio.wait_for(done.wait(), PATIENCE)
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    want = sorted(data for partition in range(PARTITIONS) for data in sent(partition))
    assert sorted(seen) == want, f"{len(seen)} messages, {len(set(seen))} different ones"


async def stores_and_deletes_an_offset():
    member = await join(await client(), "committers")
    await member.store_offset(5, 0)
    await member.delete_offset(0)


CHECKS = [
    pings_and_logs_in,
    is_refused_with_a_wrong_password,
    logs_in_by_connection_string,
    creates_a_stream_and_a_topic,
    is_refused_a_stream_that_exists,
    produces,
    polls_with_every_strategy,
    two_members_consume_everything_once,
    stores_and_deletes_an_offset,
]


def main():
    failed = False
    for check in CHECKS:
        name = f"python: {check.__name__.replace('_', ' ')}"
        try:
            asyncio.run(asyncio.wait_for(check(), PATIENCE))
            print(f"ok {name}", flush=True)
        except BaseException as error:  # a panic of the client's Rust side is no Exception
            failed = True
            traceback.print_exc()
            print(f"FAILED {name}: {error!r}", flush=True)
    sys.stderr.flush()
    os._exit(failed)  # threads of the client's runtime sometimes abort an orderly end of the interpreter


if __name__ == "__main__":
    main()
