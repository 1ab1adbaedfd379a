// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The macros define what the header declares.

use prototypes::{header, plugin};

#[test]
fn the_macros_define_the_prototypes_of_the_header() {
    assert_eq!(plugin::signatures(), header::signatures());
}

#[test]
fn no_function_of_the_header_is_left_out() {
    let declared = header::TEXT.split("pub fn ").skip(1);
    let mut declared: Vec<_> = declared.filter_map(|text| text.split('(').next()).collect();
    declared.retain(|name| name.starts_with("iggy_"));
    let mut defined: Vec<_> = plugin::signatures().into_iter().map(|(name, _)| name).collect();
    declared.sort_unstable();
    defined.sort_unstable();
    assert_eq!(defined, declared);
}

#[test]
fn a_signature_shows_every_type() {
    let signatures = plugin::signatures();
    let handle = &signatures.iter().find(|(name, _)| *name == "iggy_source_handle_v2").unwrap().1;
    let send = "extern \"C\" fn(u32, u64, *const u8, usize) returns i32";
    assert_eq!(*handle, format!("extern \"C\" fn(u32, {send}) returns i32"));
}
