# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

BUILD := build
BIN := $(BUILD)/iggy-connect-go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The version is that of the tag, such as v0.1.0; between tags that of the next release with
# the commit.
COMMIT ?= $(shell git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
RELEASED = $(shell git describe --exact-match --match 'v[0-9]*' 2>/dev/null)
NEXT = $(shell sed -n '/^project/s/.* VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
VERSION ?= $(or $(RELEASED:v%=%),$(NEXT)-dev.g$(COMMIT))
LDFLAGS = -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# RELEASE=1: without debug information, and the same bytes from any directory. REBUILD=1: with
# nothing taken from Go's cache.
ifdef RELEASE
LDFLAGS += -s -w
BUILDFLAGS := -trimpath $(if $(REBUILD),-a)
endif

# A third less code, and with it resident memory: gRPC without its trace pages, whose
# templates keep the linker from dropping unused methods; the MessagePack codec without
# code generated for types that are not used.
TAGS := grpcnotrace,codec.notmono,codec.notfastpath

# Quickstart: FILE is tailed through Iggy into stdout_sink, FOR ends it after a time.
FILE ?= examples/data/sensors.ndjson
FOR ?=

.PHONY: all build plugins quickstart test lint test-go test-c test-timing test-isolation test-faults bench format habits vulnerabilities image dist clean

all: build plugins

build:
	@.ci/setup cc
	go build $(BUILDFLAGS) -buildvcs=false -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o $(BIN) ./runtime/cmd/iggy-connect-go

plugins:
	@.ci/setup cc c++ cmake libcjson-dev libmsgpack-dev
	cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release
	cmake --build $(BUILD) --parallel

quickstart: build plugins
	$(BIN) quickstart --file '$(FILE)' $(if $(FOR),--for $(FOR))

test: lint test-c test-go

lint:
	@.ci/setup cc
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt needed: $$unformatted"; exit 1; fi
	@others=$$(git grep -l '"unsafe"' -- '*.go' ':!runtime/internal/plugin/unsafe.go'); \
	if [ -n "$$others" ]; then echo "unsafe belongs into runtime/internal/plugin/unsafe.go: $$others"; exit 1; fi
	.ci/headers
	go vet ./...
	go run $(STATICCHECK) ./...

# The C side runs under AddressSanitizer and UndefinedBehaviorSanitizer in a build of its own.
test-c:
	@.ci/setup cc c++ cmake libcjson-dev libmsgpack-dev
	cmake -S . -B $(BUILD)/sanitized -DCMAKE_BUILD_TYPE=Debug -DIGGY_SANITIZE=address,undefined
	cmake --build $(BUILD)/sanitized --parallel
	ctest --test-dir $(BUILD)/sanitized --output-on-failure --parallel 2

# The documents that tests run ask the API with curl.
test-go: build plugins
	@.ci/setup curl
	go test -race -timeout 15m ./...

# What runs whole connectors, with every plugin in a process of its own.
test-isolation: build plugins
	ISOLATION=process go test -race -count=1 -timeout 15m -skip 'Docs|ShownElsewhere' ./runtime/internal/connector ./tests/e2e

# What measures time, with nothing beside it.
test-timing: build plugins
	TIMING=1 go test -count=1 -timeout 30m -p 1 -run 'Busy|Throughput|Timing$(if $(NIGHTLY),|Cost)' ./tests/e2e ./runtime/internal/plugin ./runtime/internal/connector

# Everything breaks, for so long; the runtime watches itself for data races and can be
# told to die between two steps of a delivery.
FAULTS ?= $(if $(NIGHTLY),30m,1m)
test-faults: build plugins
	go build -race -tags '$(TAGS),failpoint' -o $(BUILD)/faults/iggy-connect-go ./runtime/cmd/iggy-connect-go
	FAULTS=$(FAULTS) go test -count=1 -timeout 90m -parallel 6 ./tests/faults

# The quick set takes eight minutes, the whole matrix many hours. docs/performance.md says what BENCH can be.
bench: build plugins
	go run ./bench $(BENCH)

bench-full: build plugins
	go run ./bench --table full $(BENCH)

# Go, C, C++ and Rust in the shape that the checks want.
format:
	@.ci/setup clang-format-14 cargo
	gofmt -w $$(git ls-files '*.go')
	clang-format-14 -i $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp' ':!abi/testdata' ':!abi/connector.h')
	for manifest in $$(git ls-files '*/Cargo.toml'); do cargo fmt --manifest-path $$manifest || exit 1; done

# What keeps the sources in one shape, and the licences of dependencies.
habits:
	.ci/habits

# Known vulnerabilities in what is called; asks vuln.go.dev.
vulnerabilities:
	go run $(GOVULNCHECK) -tags '$(TAGS)' ./...

# The image apache/iggy-connect-go, by docker or ENGINE=podman.
ENGINE ?= docker
image:
	$(ENGINE) build --tag apache/iggy-connect-go --build-arg VERSION='$(VERSION)' --build-arg COMMIT='$(COMMIT)' .

# A release for linux, in dist/; DIST=amd64 for one architecture alone.
dist:
	VERSION='$(VERSION)' COMMIT='$(COMMIT)' deploy/dist.sh $(DIST)

clean:
	rm -rf $(BUILD) dist
