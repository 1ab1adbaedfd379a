#!/bin/sh
# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Makes a release in dist/: for each architecture a tar.gz and two .deb, and checksums.
# The same commit gives the same bytes, in any directory: .ci/dist tests that. Called
# by 'make dist', which gives VERSION and COMMIT. Usage: deploy/dist.sh [amd64] [arm64]
#
# Everything is compiled by Debian's (cross) gcc against a Debian 12 that is unpacked in
# ~/.cache, so that it runs there, whatever this machine runs.
set -eu
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

: "${VERSION:?call make dist}" "${COMMIT:?call make dist}"
[ $# -gt 0 ] || set -- amd64 arm64
SUITE=bookworm
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/iggy-connect-go/sysroot
LIBRARIES=libcjson-dev,libmsgpack-dev # of the examples in a release
EXAMPLES='file_source random_source stdout_sink file_sink'
SDK='iggy_connector_sdk iggy_connector_mock iggy_connector_config iggy_connector_json iggy_connector_state'
GO_LICENSES=github.com/google/go-licenses@v1.6.0

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
out=dist
work=build/dist

triple() {
    case $1 in
    amd64) echo x86_64-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
    *)
        echo "unknown architecture $1: amd64 and arm64 are known" >&2
        exit 2
        ;;
    esac
}

# sysroot ARCH: unpacks what is compiled against, once.
sysroot() {
    [ -d "$CACHE/$SUITE-$1" ] && return
    mkdir -p "$CACHE"
    rm -rf "$CACHE/$1.part"
    mmdebstrap --quiet --variant=extract --architectures="$1" --include="libc6-dev,libgcc-12-dev,$LIBRARIES" \
        "$SUITE" "$CACHE/$1.part"
    rm -rf "$CACHE/$1.part/usr/share" "$CACHE/$1.part/dev"
    mv "$CACHE/$1.part" "$CACHE/$SUITE-$1"
}

# compile ARCH: the program, the examples and the C SDK, as they are installed below a prefix.
compile() {
    root=$CACHE/$SUITE-$1 built=$work/$1
    cc=$(triple "$1")-gcc
    rm -rf "$built"
    CGO_ENABLED=1 GOARCH=$1 CC="$cc --sysroot=$root" \
        make --no-print-directory build RELEASE=1 BUILD="$built" VERSION="$VERSION" COMMIT="$COMMIT"
    # A name for the compiler's target, so that CMake looks for libraries there alone.
    cmake -S . -B "$built/cmake" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="${cc%%-*}" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER= -DCMAKE_SYSROOT="$root" -DCMAKE_LIBRARY_ARCHITECTURE="$(triple "$1")" \
        -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON \
        -DCMAKE_C_FLAGS="-ffile-prefix-map=$PWD=." >"$built/cmake.log"
    # shellcheck disable=SC2086 # a word a target
    cmake --build "$built/cmake" --parallel --target $EXAMPLES $SDK >>"$built/cmake.log" || {
        cat "$built/cmake.log" >&2
        exit 1
    }
}

# tree ARCH DIR: what was compiled, with documents, as a prefix.
tree() {
    built=$work/$1
    rm -rf "$2"
    mkdir -p "$2/lib/iggy-connect-go" "$2/share/doc/iggy-connect-go" "$2/share/iggy-connect-go"
    install -D "$built/iggy-connect-go" -t "$2/bin"
    for example in $EXAMPLES; do
        install -m 644 "$built/cmake/plugins/lib$example.so" "$2/lib/iggy-connect-go/"
    done
    "$(triple "$1")-strip" --strip-unneeded "$2"/lib/iggy-connect-go/*.so
    cmake --install "$built/cmake" --prefix "$2" --component IggyConnector >/dev/null
    install -D -m 644 deploy/systemd/iggy-connect-go.service -t "$2/lib/systemd/system"
    install -m 644 LICENSE README.md CHANGELOG.md "$2/share/doc/iggy-connect-go/"
    cp -r docs "$2/share/doc/iggy-connect-go/"
    rm -f "$2"/share/doc/iggy-connect-go/docs/*.go
    cp -r "$work/licenses" "$2/share/doc/iggy-connect-go/third-party"
    cp -r configs/minimal configs/reference configs/schema configs/monitoring "$2/share/iggy-connect-go/"
    find "$2" -type d -exec chmod 755 {} +
    find "$2" -type f ! -perm /111 -exec chmod 644 {} +
}

archive() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --format=ustar -C "$work" -cf - "$1" | gzip -9n >"$out/$1.tar.gz"
}

# deb NAME ARCH DEPENDS DESCRIPTION: a package of what is in $work/deb.
deb() {
    mkdir -p "$work/deb/DEBIAN"
    cat >"$work/deb/DEBIAN/control" <<CONTROL
Package: $1
Version: $(echo "$VERSION" | sed 's/-/~/')
Architecture: $2
Maintainer: Apache Iggy <dev@iggy.apache.org>
Installed-Size: $(du -sk --apparent-size "$work/deb" | cut -f1)
Depends: $3
Section: net
Priority: optional
Homepage: https://iggy.apache.org
Description: $4
CONTROL
    [ ! -d "$work/deb/etc" ] || (cd "$work/deb" && find etc -type f | sort | sed 's|^|/|') >"$work/deb/DEBIAN/conffiles"
    dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$work/deb" "$out/$1_${VERSION}_$2.deb" >/dev/null
}

# debs ARCH TREE: the program with its examples, and the C SDK.
debs() {
    rm -rf "$work/deb"
    mkdir -p "$work/deb/usr/lib/cmake" "$work/deb/usr/lib/pkgconfig"
    cp -r "$2/include" "$work/deb/usr/"
    cp -r "$2"/lib/*.a "$2/lib/cmake" "$2/lib/pkgconfig" "$work/deb/usr/lib/"
    deb libiggy-connector-dev "$1" libc6-dev 'C SDK for connector plugins of Apache Iggy'

    rm -rf "$work/deb"
    mkdir -p "$work/deb/usr/lib" "$work/deb/etc/iggy-connect-go/connectors"
    cp -r "$2/bin" "$2/share" "$work/deb/usr/"
    cp -r "$2/lib/iggy-connect-go" "$2/lib/systemd" "$work/deb/usr/lib/"
    install -m 644 deploy/systemd/config.toml "$work/deb/etc/iggy-connect-go/"
    deb iggy-connect-go "$1" 'libc6 (>= 2.36), libcjson1, libmsgpackc2' 'connectors runtime for Apache Iggy'
}

for arch; do
    compilers="${compilers:-} $(triple "$arch")-gcc"
done
# shellcheck disable=SC2086 # a word a compiler
.ci/setup cmake mmdebstrap dpkg-deb $compilers
rm -rf "$out" "$work"
mkdir -p "$out" "$work"
GOROOT=$(go env GOROOT) go run "$GO_LICENSES" save ./runtime/cmd/iggy-connect-go --save_path="$work/licenses" 2>"$work/licenses.log" || {
    cat "$work/licenses.log" >&2
    exit 1
}
for arch; do
    name=iggy-connect-go-$VERSION-linux-$arch
    sysroot "$arch"
    compile "$arch"
    tree "$arch" "$work/$name"
    archive "$name"
    debs "$arch" "$work/$name"
done
(cd "$out" && sha256sum -- *) >"$work/sums"
mv "$work/sums" "$out/SHA256SUMS"
cat "$out/SHA256SUMS"
