// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The crate's types against the golden vectors of `testdata/golden`, or of the folder that
//! `GOLDEN_DIR` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use iggy_common::{HeaderKey, HeaderKind, HeaderValue};
use iggy_connector_sdk::{
    ConnectorState, Error, MessagesMetadata, Payload, ProducedMessage, ProducedMessages,
    RawMessage, RawMessages, Schema, TopicMetadata, owned_value_to_serde_json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Headers = BTreeMap<HeaderKey, HeaderValue>;

// ---- Cases --------------------------------------------------------------------------------------

/// The cases of one file that this package can express. `None`: the folder has no such file.
fn cases(file: &str) -> Option<Vec<Value>> {
    let folder = std::env::var_os("GOLDEN_DIR").map_or_else(folder_in_tree, PathBuf::from);
    let text = std::fs::read_to_string(folder.join(file)).ok()?;
    let cases: Vec<Value> = serde_json::from_str(&text).expect("a golden file is a JSON array");
    Some(cases.into_iter().filter(is_expressible).collect())
}

fn folder_in_tree() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let candidates = package.ancestors().map(|folder| folder.join("testdata/golden"));
    candidates.into_iter().find(|folder| folder.is_dir()).expect("the tree has testdata/golden")
}

/// Some cases need what only upstream's HEAD has; the one of Avro's name does not say so.
fn is_expressible(case: &Value) -> bool {
    let of_head = case["since"] == "head" || case["generations"] == json!(["head"]);
    cfg!(level_head) || !(of_head || case["name"] == "schema_serde_avro")
}

fn expected(case: &Value) -> &Value {
    match &case["expected_0_8_0"] {
        older if !cfg!(level_head) && !older.is_null() => older,
        _ => &case["expected"],
    }
}

/// Runs `check` on each case of the operations and fails with the name of a case that fails.
fn check_all(file: &str, operations: &[&str], check: impl Fn(&Value) -> Result<(), String>) {
    for case in cases(file).unwrap_or_default() {
        if !operations.contains(&text(&case["op"])) {
            continue;
        }
        if let Err(reason) = check(&case) {
            panic!("{file}: {}: {reason}", case["name"]);
        }
    }
}

#[test]
fn there_are_golden_cases() {
    let files = ["postcard.json", "headers_by_generation.json", "codecs.json", "misc.json"];
    assert!(files.iter().filter_map(|file| cases(file)).any(|cases| !cases.is_empty()));
}

fn equal<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("got {got:?}, wanted {wanted:?}")) }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn from_hex(hex: &Value) -> Vec<u8> {
    let digits = text(hex).as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// ---- Values: the golden files' notation and the crate's types ------------------------------------

trait Golden: Serialize + DeserializeOwned {
    fn read(value: &Value) -> Self;
    fn write(&self) -> Value;
}

macro_rules! golden_number {
    ($($number:ty),*) => {$(
        impl Golden for $number {
            fn read(value: &Value) -> Self {
                text(value).parse().unwrap()
            }
            fn write(&self) -> Value {
                json!(self.to_string())
            }
        }
    )*};
}
golden_number!(u32, u64, u128);

impl Golden for String {
    fn read(value: &Value) -> Self {
        text(value).to_owned()
    }
    fn write(&self) -> Value {
        json!(self)
    }
}

impl Golden for ConnectorState {
    fn read(value: &Value) -> Self {
        Self(from_hex(value))
    }
    fn write(&self) -> Value {
        json!(to_hex(&self.0))
    }
}

impl<T: Golden> Golden for Option<T> {
    fn read(value: &Value) -> Self {
        (!value.is_null()).then(|| T::read(value))
    }
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::write)
    }
}

impl Golden for Schema {
    fn read(value: &Value) -> Self {
        match text(value) {
            "json" => Schema::Json,
            "raw" => Schema::Raw,
            "text" => Schema::Text,
            "proto" => Schema::Proto,
            "flatbuffer" => Schema::FlatBuffer,
            #[cfg(level_head)]
            "avro" => Schema::Avro,
            other => panic!("unknown schema {other}"),
        }
    }
    fn write(&self) -> Value {
        json!(self.to_string())
    }
}

impl Golden for HeaderKind {
    fn read(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap()
    }
    fn write(&self) -> Value {
        json!(self)
    }
}

/// A header's key or value of any kind and any bytes. The constructors refuse some; the serialized
/// form does not.
fn read_field<T: DeserializeOwned>(kind: &Value, bytes: &[u8]) -> T {
    serde_json::from_value(json!({ "kind": kind, "value": BASE64.encode(bytes) })).unwrap()
}

fn write_field(field: impl Serialize) -> Value {
    let field = serde_json::to_value(field).unwrap();
    json!({ "kind": field["kind"], "hex": to_hex(&BASE64.decode(text(&field["value"])).unwrap()) })
}

impl Golden for Headers {
    fn read(value: &Value) -> Self {
        let field = |field: &Value| (field["kind"].clone(), from_hex(&field["hex"]));
        let entry = |entry: &Value| {
            let ((key_kind, key), (kind, value)) = (field(&entry["key"]), field(&entry["value"]));
            (read_field(&key_kind, &key), read_field(&kind, &value))
        };
        value.as_array().expect("headers are a list").iter().map(entry).collect()
    }
    fn write(&self) -> Value {
        let entry = |(key, value)| json!({ "key": write_field(key), "value": write_field(value) });
        self.iter().map(entry).collect()
    }
}

impl Golden for TopicMetadata {
    fn read(value: &Value) -> Self {
        Self { stream: Golden::read(&value["stream"]), topic: Golden::read(&value["topic"]) }
    }
    fn write(&self) -> Value {
        json!({ "stream": self.stream, "topic": self.topic })
    }
}

impl Golden for MessagesMetadata {
    fn read(value: &Value) -> Self {
        Self {
            partition_id: Golden::read(&value["partition_id"]),
            current_offset: Golden::read(&value["current_offset"]),
            schema: Golden::read(&value["schema"]),
        }
    }
    fn write(&self) -> Value {
        json!({
            "partition_id": self.partition_id.write(),
            "current_offset": self.current_offset.write(),
            "schema": self.schema.write(),
        })
    }
}

impl Golden for RawMessage {
    fn read(value: &Value) -> Self {
        let headers = match &value["headers"] {
            Value::Null => Vec::new(),
            blob @ Value::String(_) => from_hex(blob),
            map => postcard::to_stdvec(&Headers::read(map)).unwrap(),
        };
        Self {
            id: Golden::read(&value["id"]),
            offset: Golden::read(&value["offset"]),
            checksum: Golden::read(&value["checksum"]),
            timestamp: Golden::read(&value["timestamp"]),
            origin_timestamp: Golden::read(&value["origin_timestamp"]),
            headers,
            payload: from_hex(&value["payload"]),
        }
    }
    fn write(&self) -> Value {
        json!({
            "id": self.id.write(),
            "offset": self.offset.write(),
            "checksum": self.checksum.write(),
            "timestamp": self.timestamp.write(),
            "origin_timestamp": self.origin_timestamp.write(),
            "headers": to_hex(&self.headers),
            "payload": to_hex(&self.payload),
        })
    }
}

impl Golden for RawMessages {
    fn read(value: &Value) -> Self {
        Self { schema: Golden::read(&value["schema"]), messages: read_list(&value["messages"]) }
    }
    fn write(&self) -> Value {
        json!({ "schema": self.schema.write(), "messages": write_list(&self.messages) })
    }
}

impl Golden for ProducedMessage {
    fn read(value: &Value) -> Self {
        Self {
            id: Golden::read(&value["id"]),
            checksum: Golden::read(&value["checksum"]),
            timestamp: Golden::read(&value["timestamp"]),
            origin_timestamp: Golden::read(&value["origin_timestamp"]),
            headers: Golden::read(&value["headers"]),
            payload: from_hex(&value["payload"]),
        }
    }
    fn write(&self) -> Value {
        json!({
            "id": self.id.write(),
            "checksum": self.checksum.write(),
            "timestamp": self.timestamp.write(),
            "origin_timestamp": self.origin_timestamp.write(),
            "headers": self.headers.write(),
            "payload": to_hex(&self.payload),
        })
    }
}

impl Golden for ProducedMessages {
    fn read(value: &Value) -> Self {
        Self {
            schema: Golden::read(&value["schema"]),
            messages: read_list(&value["messages"]),
            state: Golden::read(&value["state"]),
        }
    }
    fn write(&self) -> Value {
        json!({
            "schema": self.schema.write(),
            "messages": write_list(&self.messages),
            "state": self.state.write(),
        })
    }
}

fn read_list<T: Golden>(list: &Value) -> Vec<T> {
    list.as_array().expect("a list").iter().map(T::read).collect()
}

fn write_list<T: Golden>(list: &[T]) -> Value {
    list.iter().map(T::write).collect()
}

// ---- The wire -----------------------------------------------------------------------------------

#[test]
fn wire_structures_have_the_golden_bytes() {
    check_all("postcard.json", &["pc_encode", "pc_decode"], |case| match text(&case["type"]) {
        "u32" => check_wire::<u32>(case),
        "u64" => check_wire::<u64>(case),
        "u128" => check_wire::<u128>(case),
        "Option<u64>" => check_wire::<Option<u64>>(case),
        "Option<u128>" => check_wire::<Option<u128>>(case),
        "String" => check_wire::<String>(case),
        // The state is a byte vector in a wrapper without bytes of its own.
        "bytes" | "ConnectorState" => check_wire::<ConnectorState>(case),
        "Option<ConnectorState>" => check_wire::<Option<ConnectorState>>(case),
        "Schema" => check_wire::<Schema>(case),
        "HeaderKind" => check_wire::<HeaderKind>(case),
        "Headers" => check_wire::<Headers>(case),
        "TopicMetadata" => check_wire::<TopicMetadata>(case),
        "MessagesMetadata" => check_wire::<MessagesMetadata>(case),
        "RawMessage" => check_wire::<RawMessage>(case),
        "RawMessages" => check_wire::<RawMessages>(case),
        "ProducedMessage" => check_wire::<ProducedMessage>(case),
        "ProducedMessages" => check_wire::<ProducedMessages>(case),
        other => Err(format!("the type {other} is not known here")),
    });
}

fn check_wire<T: Golden>(case: &Value) -> Result<(), String> {
    match text(&case["op"]) {
        "pc_encode" => check_encoding::<T>(case),
        _ => check_decoding::<T>(case),
    }
}

fn check_encoding<T: Golden>(case: &Value) -> Result<(), String> {
    let value = T::read(&case["value"]);
    equal(to_hex(&postcard::to_stdvec(&value).unwrap()).as_str(), text(&case["hex"]))?;
    let Some(decoded) = case.get("decoded") else {
        return Ok(());
    };
    let back: T = postcard::from_bytes(&from_hex(&case["hex"])).map_err(|e| e.to_string())?;
    equal(&back.write(), decoded)
}

fn check_decoding<T: Golden>(case: &Value) -> Result<(), String> {
    let (bytes, expected) = (from_hex(&case["hex"]), expected(case));
    match (postcard::take_from_bytes::<T>(&bytes), text(&expected["status"])) {
        (Ok((value, rest)), "ok") => {
            equal(&value.write(), &expected["value"])?;
            equal(&json!(rest.len()), &expected["trailing_bytes"])
        }
        (Err(_), "error") => Ok(()),
        (got, _) => Err(format!("got {:?}", got.map(|(value, _)| value.write()))),
    }
}

#[test]
fn headers_have_the_bytes_of_this_generation() {
    let bytes_of =
        if cfg!(level_head) { "hex_iggy_common_0_11_0_edge_4" } else { "hex_iggy_common_0_10_0" };
    check_all("headers_by_generation.json", &["headers_by_generation"], |case| {
        let key = HeaderKey::try_from(text(&case["key"])).map_err(|e| e.to_string())?;
        let value = read_field(&case["value_kind"], &from_hex(&case["value_hex"]));
        let bytes = postcard::to_stdvec(&Headers::from([(key, value)])).unwrap();
        equal(to_hex(&bytes).as_str(), text(&case[bytes_of]))
    });
}

// ---- Payloads -----------------------------------------------------------------------------------

fn read_payload(value: &Value) -> Payload {
    let content = || text(&value["text"]).to_owned();
    match text(&value["kind"]) {
        "json" => Payload::Json(simd_json::to_owned_value(&mut content().into_bytes()).unwrap()),
        "raw" => Payload::Raw(from_hex(&value["hex"])),
        "text" => Payload::Text(content()),
        "proto" => Payload::Proto(content()),
        "flatbuffer" => Payload::FlatBuffer(from_hex(&value["hex"])),
        #[cfg(level_head)]
        "avro" => Payload::Avro(from_hex(&value["hex"])),
        other => panic!("unknown kind {other}"),
    }
}

fn write_payload(payload: &Payload) -> Value {
    let bytes = payload.try_to_bytes().unwrap();
    let content = || String::from_utf8_lossy(&bytes);
    match payload {
        Payload::Json(_) => json!({ "kind": "json", "text": content() }),
        Payload::Text(_) => json!({ "kind": "text", "text": content() }),
        Payload::Proto(_) => json!({ "kind": "proto", "text": content() }),
        Payload::Raw(_) => json!({ "kind": "raw", "hex": to_hex(&bytes) }),
        Payload::FlatBuffer(_) => json!({ "kind": "flatbuffer", "hex": to_hex(&bytes) }),
        #[cfg(level_head)]
        Payload::Avro(_) => json!({ "kind": "avro", "hex": to_hex(&bytes) }),
    }
}

fn variant(error: &Error) -> String {
    let debug = format!("{error:?}");
    debug.split('(').next().unwrap_or_default().to_owned()
}

#[test]
fn bytes_become_the_golden_payload() {
    check_all("codecs.json", &["schema_into_payload"], |case| {
        let (schema, expected) = (Schema::read(&case["schema"]), expected(case));
        match schema.try_into_payload(from_hex(&case["input_hex"])) {
            Ok(payload) => equal(&write_payload(&payload), &expected["payload"]),
            Err(error) => equal(&json!(variant(&error)), &expected["variant"]),
        }
    });
}

#[test]
fn payloads_become_the_golden_bytes() {
    check_all("codecs.json", &["payload_into_vec"], |case| {
        let payload = read_payload(&case["payload"]);
        equal(payload.try_to_bytes(), payload.clone().try_into_vec())?;
        equal(&json!(to_hex(&payload.try_into_vec().unwrap())), &expected(case)["hex"])
    });
}

#[test]
fn payloads_are_shown_as_upstream_shows_them() {
    check_all("codecs.json", &["payload_display"], |case| {
        equal(&json!(read_payload(&case["payload"]).to_string()), &expected(case)["text"])
    });
}

// ---- Names, states, errors ----------------------------------------------------------------------

#[test]
fn schemas_have_the_names_of_the_configuration() {
    check_all("misc.json", &["schema_serde"], |case| {
        let expected = expected(case);
        match serde_json::from_value::<Schema>(case["input"].clone()) {
            Ok(schema) => {
                equal(&schema.write(), &expected["schema"])?;
                equal(&json!(schema), &expected["serialized"])
            }
            Err(_) => equal(&json!("error"), &expected["status"]),
        }
    });
}

#[test]
fn states_are_messagepack_and_come_back() {
    check_all("misc.json", &["state_msgpack"], |case| {
        let state = ConnectorState::serialize(&case["value"], "golden", 1).ok_or("no state")?;
        equal(&state.write(), &expected(case)["hex"])?;
        equal(state.deserialize::<Value>("golden", 1).as_ref(), Some(&case["value"]))
    });
}

#[test]
fn json_is_converted_without_loss() {
    check_all("misc.json", &["to_serde_json"], |case| {
        let Payload::Json(value) = read_payload(&case["payload"]) else {
            return Err("the payload is not JSON".to_owned());
        };
        let wanted = serde_json::from_str(text(&expected(case)["text"])).unwrap();
        equal(owned_value_to_serde_json(&value), wanted)
    });
}

#[test]
fn errors_have_the_texts_of_upstream() {
    let detail = || "detail".to_owned();
    let errors = [
        Error::InvalidConfig,
        Error::InvalidConfigValue(detail()),
        Error::InvalidRecord,
        Error::InvalidRecordValue(detail()),
        Error::InvalidTransformer,
        Error::HttpRequestFailed(detail()),
        Error::InitError(detail()),
        Error::InvalidPayloadType,
        Error::InvalidJsonPayload,
        Error::InvalidTextPayload,
        Error::CannotDecode(Schema::FlatBuffer),
        Error::Storage(detail()),
        Error::Serialization(detail()),
        Error::InvalidProtobufPayload,
        Error::CannotOpenStateFile,
        Error::CannotReadStateFile,
        Error::CannotWriteStateFile,
        Error::InvalidState,
        Error::Connection(detail()),
        Error::CannotStoreData(detail()),
        Error::PermanentHttpError(detail()),
        #[cfg(level_head)]
        Error::SchemaMismatch(detail()),
        #[cfg(level_head)]
        Error::WriteFailure(detail()),
        #[cfg(level_head)]
        Error::TransactionApplyError(detail()),
        #[cfg(level_head)]
        Error::CatalogCommitError(detail()),
    ];
    let described =
        |error: &Error| json!({ "variant": variant(error), "message": error.to_string() });
    let described: Value = errors.iter().map(described).collect();
    check_all("misc.json", &["error_display"], |case| equal(&described, &expected(case)["errors"]));
}
