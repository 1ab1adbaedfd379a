#!/bin/sh
# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Official Iggy clients against the embedded broker: each produces, consumes in a group, and lists, creates and
# deletes what its API can. The Go SDK is tested beside the broker, in Go.
#
# Usage: tests/clients/run.sh [python] [rust] [cli]     (all when none is named)
#
# Clients are installed once, below CACHE, and not into the system. IGGY_TEST_ADDRESS names a running server to test
# instead of the embedded broker; the names of what the checks create are different in each run.
set -eu
cd "$(dirname "$0")/../.."

PYTHON_CLIENT=0.8.0 # apache-iggy, PyPI
CLI=0.13.0          # iggy-cli, crates.io; the Rust client's version is in rust/Cargo.toml

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/iggy-connect-go
export CARGO_TARGET_DIR="$CACHE/target"
here=tests/clients
log=$(mktemp -d)
broker=

cleanup() {
    [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
    rm -rf "$log"
}
trap cleanup EXIT

install_python() {
    [ -x "$CACHE/python/bin/python" ] || python3 -m venv "$CACHE/python"
    "$CACHE/python/bin/pip" install --quiet --disable-pip-version-check "apache-iggy==$PYTHON_CLIENT"
}

install_rust() {
    nice -n 19 cargo build --quiet --locked --manifest-path $here/rust/Cargo.toml
}

install_cli() {
    case $("$CACHE/cli/bin/iggy" --version 2>/dev/null || true) in
    *" $CLI"*) ;;
    *) nice -n 19 cargo install --quiet --locked --debug \
        --root "$CACHE/cli" --version "$CLI" iggy-cli ;;
    esac
}

start_broker() {
    if [ -n "${IGGY_TEST_ADDRESS:-}" ]; then
        return
    fi
    go build -o "$CACHE/iggy-connect-go" ./runtime/cmd/iggy-connect-go
    "$CACHE/iggy-connect-go" broker --address 127.0.0.1:0 >"$log/broker" &
    broker=$!
    while ! IGGY_TEST_ADDRESS=$(sed -n 's/.* listens on \([0-9.:]*\).*/\1/p' "$log/broker") || [ -z "$IGGY_TEST_ADDRESS" ]; do
        kill -0 "$broker" # ends the script when the broker did not start
        sleep 0.1
    done
    export IGGY_TEST_ADDRESS
}

# Every client prints a line for each check: "ok NAME" or "FAILED NAME: REASON".
check() {
    case $1 in
    python) timeout 300 "$CACHE/python/bin/python" $here/python/checks.py ;;
    rust) timeout 300 "$CARGO_TARGET_DIR/debug/client-checks" ;;
    cli) PATH="$CACHE/cli/bin:$PATH" timeout 300 sh $here/cli/checks.sh ;;
    esac
}

mkdir -p "$CACHE"
[ $# -gt 0 ] || set -- python rust cli
for client; do
    case $client in
    python) .ci/setup python3 ;;
    rust | cli) .ci/setup cargo cc ;;
    *)
        echo "unknown client '$client': python, rust and cli are known" >&2
        exit 2
        ;;
    esac
    echo "Installing the $client client in $CACHE (the first time takes minutes)" >&2
    "install_$client"
done
start_broker

for client; do
    echo "== $client"
    status=0
    check "$client" >"$log/$client" 2>&1 || status=$?
    grep -q '^FAILED ' "$log/$client" || [ "$status" -eq 0 ] ||
        echo "FAILED $client: ended with status $status" >>"$log/$client"
    cat "$log/$client"
    cat "$log/$client" >>"$log/all"
done

passed=$(grep -c '^ok ' "$log/all" || true)
failed=$(grep -c '^FAILED ' "$log/all" || true)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
