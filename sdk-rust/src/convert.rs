// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! Conversions between JSON libraries.

use simd_json::{OwnedValue, StaticNode};

/// Converts a value for a library that speaks `serde_json`. Numbers that JSON does not know become
/// null.
pub fn owned_value_to_serde_json(value: &OwnedValue) -> serde_json::Value {
    match value {
        OwnedValue::Static(node) => match *node {
            StaticNode::Null => serde_json::Value::Null,
            StaticNode::Bool(value) => value.into(),
            StaticNode::I64(value) => value.into(),
            StaticNode::U64(value) => value.into(),
            StaticNode::F64(value) => value.into(),
        },
        OwnedValue::String(text) => text.as_str().into(),
        OwnedValue::Array(items) => items.iter().map(owned_value_to_serde_json).collect(),
        OwnedValue::Object(members) => members
            .iter()
            .map(|(key, value)| (key.as_str(), owned_value_to_serde_json(value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_unknown_to_json_become_null() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let converted = owned_value_to_serde_json(&OwnedValue::from(number));
            assert_eq!(converted, serde_json::Value::Null);
        }
    }

    #[test]
    fn integers_keep_all_their_digits() {
        let value = simd_json::json!({ "most": u64::MAX, "least": i64::MIN });
        assert_eq!(
            owned_value_to_serde_json(&value),
            serde_json::json!({ "most": u64::MAX, "least": i64::MIN })
        );
    }
}
