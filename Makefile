# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

BUILD := build
BIN := $(BUILD)/iggy-connect-go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
COMMIT ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.commit=$(COMMIT)

# A third less code, and with it resident memory: gRPC without its trace pages, whose
# templates keep the linker from dropping unused methods; the MessagePack codec without
# code generated for types that are not used.
TAGS := grpcnotrace,codec.notmono,codec.notfastpath

# Quickstart: FILE is tailed through Iggy into stdout_sink, FOR ends it after a time.
FILE ?= examples/data/sensors.ndjson
FOR ?=

.PHONY: all build plugins quickstart test lint test-go test-c test-timing bench clean

all: build plugins

build:
	@.ci/setup cc
	go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o $(BIN) ./runtime/cmd/iggy-connect-go

plugins:
	@.ci/setup cc cmake
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release
	cmake --build $(BUILD) --parallel

quickstart: build plugins
	$(BIN) quickstart --file '$(FILE)' $(if $(FOR),--for $(FOR))

test: lint test-c test-go

lint:
	@.ci/setup cc
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt needed: $$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...

# The C side runs under AddressSanitizer and UndefinedBehaviorSanitizer in a build of its own.
test-c:
	@.ci/setup cc c++ cmake
	cmake -S . -B $(BUILD)/sanitized -DCMAKE_BUILD_TYPE=Debug -DIGGY_SANITIZE=address,undefined
	cmake --build $(BUILD)/sanitized --parallel
	ctest --test-dir $(BUILD)/sanitized --output-on-failure --parallel 2

# The documents that tests run ask the API with curl.
test-go: build plugins
	@.ci/setup curl
	go test -race -timeout 15m ./...

# What measures time, with nothing beside it.
test-timing: build plugins
	TIMING=1 go test -count=1 -run 'Busy' ./tests/e2e

bench: build plugins
	go run ./bench $(BENCH)

clean:
	rm -rf $(BUILD)
