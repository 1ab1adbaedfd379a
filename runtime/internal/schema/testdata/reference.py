# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes messages with the official Python packages, for python_test.go.

Usage: reference.py proto|avro|flatbuffers FOLDER

FOLDER holds the schema, message.bin as this project wrote it and message.json as it was
written from. The script prints the message it read as JSON and writes back.bin, the same
message as the official package encodes it.
"""

import json
import pathlib
import sys


def proto(folder):
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString((folder / "schema.bin").read_bytes())
    for file in files.file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("everything.v1.Everything"))
    message = kind.FromString((folder / "message.bin").read_bytes())
    print(json_format.MessageToJson(message, descriptor_pool=pool, indent=None))
    text = (folder / "message.json").read_text()
    (folder / "back.bin").write_bytes(json_format.Parse(text, kind(), descriptor_pool=pool).SerializeToString())


def avro(folder):
    import fastavro

    schema = fastavro.parse_schema(json.loads((folder / "schema.avsc").read_text()))
    with (folder / "message.bin").open("rb") as source:
        datum = fastavro.schemaless_reader(source, schema, None)
        assert not source.read(), "bytes behind the datum"
    print(json.dumps(datum, default=plain))
    with (folder / "back.bin").open("wb") as target:
        fastavro.schemaless_writer(target, schema, datum)


def plain(value):
    """Makes JSON of the values that fastavro has types for, as this project prints them."""
    if isinstance(value, bytes):
        return list(value)
    return str(value)


def flatbuffers(folder):
    import flatbuffers
    from flatbuffers import number_types as types
    from flatbuffers.table import Table

    def table(buffer, position):
        return Table(buffer, position)

    def field(t, number):
        return t.Offset(4 + 2 * number)

    def text(t, number):
        at = field(t, number)
        return t.String(at + t.Pos).decode() if at else None

    buffer = bytearray((folder / "message.bin").read_bytes())
    root = table(buffer, flatbuffers.encode.Get(types.UOffsetTFlags.packer_type, buffer, 0))
    tags = field(root, 19)
    at = root.Vector(tags)
    names = [text(table(buffer, root.Indirect(at + 4 * i)), 0) for i in range(root.VectorLen(tags))]
    scalar = lambda number, kind: root.Get(kind, field(root, number) + root.Pos)
    point = field(root, 16) + root.Pos
    print(json.dumps({
        "name": text(root, 0),
        "grade": scalar(1, types.Int8Flags),
        "ulong_value": scalar(10, types.Uint64Flags),
        "long_value": scalar(9, types.Int64Flags),
        "double_value": scalar(12, types.Float64Flags),
        "point_y": root.Get(types.Float64Flags, point + 8),
        "tags": names,
    }))


if __name__ == "__main__":
    {"proto": proto, "avro": avro, "flatbuffers": flatbuffers}[sys.argv[1]](pathlib.Path(sys.argv[2]))
