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
    item = json.loads((folder / "message.json").read_text())
    (folder / "back.bin").write_bytes(inventory(flatbuffers.Builder(0), item))


def inventory(builder, item):
    """Builds a part of the item: a string, scalars, a struct, vectors of all kinds and a union."""

    def vector(width, values, append):
        builder.StartVector(width, len(values), width)
        for value in reversed(values):
            append(value)
        return builder.EndVector()

    def tag(values):
        name = builder.CreateString(values["name"])
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, name, 0)
        builder.PrependUint32Slot(1, values.get("weight", 5), 5)
        return builder.EndObject()

    def point(values):
        builder.Prep(8, 24)
        builder.Pad(2)
        for cell in reversed(values["cells"]):
            builder.PrependInt16(cell)
        builder.PrependFloat64(values["y"])
        builder.Pad(4)
        builder.PrependFloat32(values["x"])
        return builder.Offset()

    name = builder.CreateString(item["name"])
    tags = vector(4, [tag(t) for t in item["tags"]], builder.PrependUOffsetTRelative)
    scores = vector(4, item["scores"], builder.PrependInt32)
    names = vector(4, [builder.CreateString(n) for n in item["names"]], builder.PrependUOffsetTRelative)
    extra = tag(item["tag"])
    builder.StartObject(29)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependInt64Slot(9, item["long_value"], 0)
    builder.PrependUint64Slot(10, item["ulong_value"], 0)
    builder.PrependFloat64Slot(12, item["double_value"], 2.5)
    builder.PrependBoolSlot(13, item["bool_value"], False)
    builder.PrependStructSlot(16, point(item["point"]), 0)
    builder.PrependUOffsetTRelativeSlot(19, tags, 0)
    builder.PrependUOffsetTRelativeSlot(20, scores, 0)
    builder.PrependUOffsetTRelativeSlot(21, names, 0)
    builder.PrependUint8Slot(24, 1, 0)  # the first type of the union, a tag
    builder.PrependUOffsetTRelativeSlot(25, extra, 0)
    builder.Finish(builder.EndObject())
    return builder.Output()


if __name__ == "__main__":
    {"proto": proto, "avro": avro, "flatbuffers": flatbuffers}[sys.argv[1]](pathlib.Path(sys.argv[2]))
