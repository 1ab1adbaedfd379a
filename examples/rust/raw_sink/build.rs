// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Bindings of the header, made at each build.

use std::path::PathBuf;

const HEADER: &str = "../../../abi/connector.h";

fn main() {
    println!("cargo::rerun-if-changed={HEADER}");
    let bindings = bindgen::Builder::default()
        .header(HEADER)
        .allowlist_type("iggy_(log|sink_.*)_fn")
        .allowlist_type("iggy_(status|log_level|schema)")
        .prepend_enum_name(false)
        .generate()
        .expect("bindgen reads the header");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindings.write_to_file(folder.join("connector.rs")).expect("OUT_DIR is writable");
}
