// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Two package versions are built from the same source: 0.4 speaks the API of upstream's HEAD,
//! 0.3 that of its server 0.8. `cfg(level_head)` is set for the former, and nothing else differs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(level_head)");
    if env!("CARGO_PKG_VERSION_MINOR") != "3" {
        println!("cargo::rustc-cfg=level_head");
    }
}
