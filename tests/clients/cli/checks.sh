#!/bin/sh
# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Checks of a server with the iggy CLI. It creates and deletes groups but cannot join one.
set -u

stream=cli-$$
user=cli-user-$$
token=cli-token-$$
failed=0

cli() {
    iggy --tcp-server-address "$IGGY_TEST_ADDRESS" --username iggy --password iggy "$@" 2>&1
}

# expect NAME PATTERN ARGUMENT...: the command succeeds and its output has a line that matches.
expect() {
    name=$1 pattern=$2
    shift 2
    if output=$(cli "$@") && printf '%s\n' "$output" | grep -Eq -- "$pattern"; then
        echo "ok cli: $name"
    else
        failed=1
        printf '%s\n' "$output"
        echo "FAILED cli: $name: no '$pattern' in the output of: iggy $*"
    fi
}

# refuse NAME ARGUMENT...: the command fails.
refuse() {
    name=$1
    shift
    if output=$(cli "$@"); then
        failed=1
        printf '%s\n' "$output"
        echo "FAILED cli: $name: succeeded: iggy $*"
    else
        echo "ok cli: $name"
    fi
}

expect "pings" "Ping" ping --count 1
expect "asks for statistics" "Streams Count" stats
expect "asks who it is" "Transport" me
expect "lists clients" "TCP|tcp" client list

expect "creates a stream" "$stream" stream create "$stream"
refuse "is refused a stream that exists" stream create "$stream"
expect "lists streams" "$stream" stream list --list-mode list
expect "creates a topic" "events" topic create "$stream" events 3 none
expect "lists topics" "events" topic list "$stream" --list-mode list
expect "adds a partition" "1" partition create "$stream" events 1
expect "removes a partition" "1" partition delete "$stream" events 1

expect "sends" "events" message send --partition-id 1 "$stream" events first second
expect "sends with a header" "events" message send --partition-id 1 --headers "kind:uint32:7" "$stream" events third
expect "sends by key" "events" message send --message-key key "$stream" events fourth
expect "polls" "second" message poll --offset 0 --message-count 3 "$stream" events 1
expect "polls headers" "kind" message poll --offset 2 --show-headers "$stream" events 1
expect "commits what it polls" "first" message poll --next --auto-commit --consumer 5 "$stream" events 1
expect "goes on after a commit" "second" message poll --next --consumer 5 "$stream" events 1
expect "sets an offset" "2" consumer-offset set 5 "$stream" events 1 2
expect "gets an offset" "2" consumer-offset get 5 "$stream" events 1
expect "flushes" "events" message flush "$stream" events 1

expect "creates a group" "readers" consumer-group create "$stream" events readers
expect "lists groups" "readers" consumer-group list "$stream" events
expect "shows a group" "readers" consumer-group get "$stream" events readers
expect "deletes a group" "readers" consumer-group delete "$stream" events readers

expect "creates a user" "$user" user create "$user" secret
expect "lists users" "$user" user list
expect "deletes a user" "$user" user delete "$user"
expect "creates a token" "." pat create "$token" 1h
expect "lists tokens" "$token" pat list
expect "deletes a token" "$token" pat delete "$token"

expect "purges a topic" "events" topic purge "$stream" events
expect "finds a purged topic empty" "message count .* 0 " topic get "$stream" events
expect "deletes a topic" "events" topic delete "$stream" events
expect "deletes a stream" "$stream" stream delete "$stream"
refuse "does not find a deleted stream" stream delete "$stream"
exit $failed
