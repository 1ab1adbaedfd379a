# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# The image apache/iggy-connect-go. Targets: slim (the runtime alone) and, the default,
# full (with the C and C++ example plugins in /usr/local/lib). `make image` builds it; .ci/image
# builds and runs it without a registry.

ARG GO=1.26-bookworm
ARG DEBIAN=bookworm-20250520-slim

FROM docker.io/library/golang:${GO} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      cmake g++ libcjson-dev libmsgpack-dev libcurl4-openssl-dev libpq-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download
COPY . .
ARG VERSION=
ARG COMMIT=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    make build plugins RELEASE=1 VERSION="$VERSION" COMMIT="$COMMIT" \
 && install -D build/iggy-connect-go -t /out/bin \
 && cmake --install build --prefix /out --component examples

# The base is Debian 12, on whose glibc existing plugins are built. A plugin that needs
# more libraries than libc: FROM apache/iggy-connect-go, USER root, apt-get install.
FROM docker.io/library/debian:${DEBIAN} AS slim
LABEL org.opencontainers.image.title="iggy-connect-go" \
      org.opencontainers.image.description="Connectors runtime for Apache Iggy" \
      org.opencontainers.image.licenses="Apache-2.0"
# By number, so that an orchestrator sees that it is not root.
RUN groupadd --system --gid 10001 iggy \
 && useradd --system --uid 10001 --gid iggy --home-dir /var/lib/iggy-connect-go --no-log-init iggy \
 && install -d -o iggy -g iggy /var/lib/iggy-connect-go /etc/iggy-connect-go/connectors
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/bin/ /usr/local/bin/
COPY configs/image/config.toml /etc/iggy-connect-go/
COPY LICENSE /usr/share/doc/iggy-connect-go/
USER 10001:10001
WORKDIR /var/lib/iggy-connect-go
VOLUME /var/lib/iggy-connect-go
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["iggy-connect-go", "health"]
ENTRYPOINT ["iggy-connect-go"]

FROM slim AS full
USER root
RUN apt-get update \
 && apt-get install -y --no-install-recommends libcjson1 libmsgpackc2 libcurl4 libpq5 libstdc++6 \
 && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log
COPY --from=build /out/lib/iggy-connect-go/ /usr/local/lib/
USER 10001:10001
