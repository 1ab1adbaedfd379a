// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is what a connector does.
type Kind string

const (
	KindSink   Kind = "sink"   // from Iggy into something else
	KindSource Kind = "source" // from something else into Iggy
)

// Common is what the configurations of both kinds share.
type Common struct {
	Type               Kind            `key:"type,noenv" example:"sink" enum:"sink|source" doc:"What the connector does. Taken from the file name where it is absent."`
	Key                string          `key:"key,required" example:"my_connector" doc:"The identity: letters, digits, dots, underscores and dashes. Taken from the file name where it is absent."`
	Enabled            bool            `key:"enabled,required" example:"true" doc:"Whether the connector is started."`
	Version            uint64          `key:"version" example:"0" doc:"Tells configurations of the same connector apart. Taken from the file name where it is absent, else the lowest free one."`
	Name               string          `key:"name,required" example:"My connector" doc:"The name to show."`
	Path               string          `key:"path,required" example:"libmy_plugin" doc:"The plugin library. The extension may be left out; a relative path is looked for next to the executable, in the working directory and in the library directories."`
	PluginConfigFormat string          `key:"plugin_config_format" example:"json" enum:"json|yaml|toml|text" doc:"How the API renders plugin_config unless it is asked for another form."`
	PluginConfig       json.RawMessage `key:"plugin_config" doc:"Handed to the plugin, as JSON."`
	Transforms         []Transform     `key:"transforms,noenv" doc:"Applied to every message, in the order in which they stand."`
	Verbose            bool            `key:"verbose" default:"false" doc:"Whether the lines about each batch are logged at INFO instead of DEBUG."`
	Benchmark          bool            `key:"benchmark" default:"false" doc:"Whether the time of each batch is logged."`

	OnFailure   OnFailure     `key:"on_failure,new" default:"stop" enum:"stop|dead_letter|drop" doc:"What becomes of a batch that failed for good: the connector stops with an error, or the batch goes to the dead letter topic, or it is dropped and counted."`
	DeadLetter  *DeadLetter   `key:"dead_letter,new" doc:"The topic that takes failed messages."`
	StopTimeout time.Duration `key:"stop_timeout,new" default:"5s" doc:"How long a stop waits for batches that are under way, after the plugin has closed."`

	Isolation
}

// Isolation is where the plugin runs, and what it may take there.
type Isolation struct {
	Mode        IsolationMode `key:"isolation,new" default:"thread" enum:"thread|process" doc:"Where the plugin runs: on threads of the runtime, or in a process of its own, whose death costs this connector alone. The keys from memory_limit to gid need process."`
	MemoryLimit Size          `key:"memory_limit,new" default:"0" doc:"How much memory the plugin may write to, its threads' stacks included (RLIMIT_DATA). 0: as much as there is."`
	CallTimeout time.Duration `key:"call_timeout,new" default:"0" doc:"How long a call into the plugin may take before its process is ended. 0: for ever; a call that hangs is reported."`
	MaxCrashes  uint32        `key:"max_crashes,new" default:"3" min:"1" doc:"Sinks: how often a batch may end the process before on_failure applies to it."`
	Nice        uint32        `key:"nice,new" default:"0" max:"19" doc:"How much less the process counts than the runtime when processors are short."`
	CPUSeconds  uint64        `key:"cpu_seconds,new" default:"0" doc:"After how much processor time the process is ended. 0: never."`
	UID         *uint32       `key:"uid,new" example:"65534" doc:"The user that the process runs as. The runtime must be root."`
	GID         *uint32       `key:"gid,new" example:"65534" doc:"The group that the process runs as, its only one. It needs uid."`
}

// IsolationMode is where a plugin runs.
type IsolationMode string

const (
	IsolateNot     IsolationMode = "thread"
	IsolateProcess IsolationMode = "process"
)

// smallestMemoryLimit is what a library and the threads that call it need to begin with.
const smallestMemoryLimit = 64 << 20

func (i *Isolation) check(report reporter) {
	if i.MemoryLimit > 0 && i.MemoryLimit < smallestMemoryLimit {
		report("memory_limit", "Invalid memory limit: less than 64 MiB leave no room for the threads of a plugin")
	}
	if i.GID != nil && i.UID == nil {
		report("gid", "it needs uid")
	}
	if i.Mode == IsolateProcess {
		return
	}
	for key, set := range map[string]bool{
		"memory_limit": i.MemoryLimit > 0, "call_timeout": i.CallTimeout > 0, "nice": i.Nice > 0,
		"cpu_seconds": i.CPUSeconds > 0, "uid": i.UID != nil,
	} {
		if set {
			report(key, "it needs isolation = \"process\"")
		}
	}
}

// Sink is the configuration of a sink connector.
type Sink struct {
	Common
	Streams        []SinkStream   `key:"streams,required" doc:"What is consumed."`
	OffsetCommit   OffsetCommit   `key:"offset_commit,new" default:"after_polling" enum:"after_polling|after_consuming" doc:"When an offset is stored: before the plugin gets the batch (a crash may lose it) or after the plugin took it (a crash may repeat it)."`
	OnMessageError OnMessageError `key:"on_message_error,new" default:"drop" enum:"drop|dead_letter" doc:"What becomes of a message that cannot be decoded, transformed or encoded. It is logged and counted in any case."`
	Retry          Retry          `key:"retry,new" doc:"How a batch that the plugin refused is repeated."`
}

// Source is the configuration of a source connector.
type Source struct {
	Common
	Streams        []SourceStream `key:"streams,required" doc:"Where messages are sent. Every entry gets every message."`
	OnMessageError OnMessageError `key:"on_message_error,new" default:"drop" enum:"drop|dead_letter|reject_batch" doc:"What becomes of a message that cannot be decoded, transformed or encoded. It is logged and counted in any case."`
	SilentAfter    time.Duration  `key:"silent_after,new" default:"0" doc:"After how long without a message the source is restarted. 0: never."`
	QueueBatches   uint32         `key:"queue_batches,new" default:"2" min:"1" max:"1024" doc:"How many batches may wait for Iggy before the plugin has to."`
	QueueBytes     Size           `key:"queue_bytes,new" default:"16 MiB" doc:"How many bytes may wait for Iggy before the plugin has to. A larger batch is taken when nothing waits."`
}

// OffsetCommit is when a sink stores an offset.
type OffsetCommit string

const (
	AfterPolling   OffsetCommit = "after_polling"
	AfterConsuming OffsetCommit = "after_consuming"
)

// OnFailure is what becomes of a batch that failed for good.
type OnFailure string

const (
	FailureStop       OnFailure = "stop"
	FailureDeadLetter OnFailure = "dead_letter"
	FailureDrop       OnFailure = "drop"
)

// OnMessageError is what becomes of one bad message.
type OnMessageError string

const (
	MessageDrop        OnMessageError = "drop"
	MessageDeadLetter  OnMessageError = "dead_letter"
	MessageRejectBatch OnMessageError = "reject_batch"
)

// DeadLetter is the section [dead_letter].
type DeadLetter struct {
	Stream     string `key:"stream,required,new" example:"dead_letters" doc:"The stream, created when missing."`
	Topic      string `key:"topic,required,new" example:"my_connector" doc:"The topic, created when missing."`
	SplitBatch bool   `key:"split_batch,new" default:"false" doc:"Sinks: whether a failed batch is halved until the bad message stands alone, so that the good ones of the batch are delivered."`
}

func (d *DeadLetter) check(report reporter) {
	checkName(d.Stream, "stream", report)
	checkName(d.Topic, "topic", report)
}

// Retry is the section [retry] of a sink.
type Retry struct {
	Enabled           bool          `key:"enabled,new" default:"true" doc:"Whether a refused batch is repeated. It needs offset_commit = after_consuming."`
	MaxAttempts       uint32        `key:"max_attempts,new" default:"5" doc:"How often a batch is repeated before on_failure applies. 0: for ever."`
	InitialBackoff    time.Duration `key:"initial_backoff,new" default:"500ms" doc:"The wait before the first repetition, about."`
	MaxBackoff        time.Duration `key:"max_backoff,new" default:"30s" doc:"The longest wait, about."`
	BackoffMultiplier uint32        `key:"backoff_multiplier,new" default:"2" min:"1" doc:"By what the wait grows each time."`
}

func (r *Retry) check(report reporter) {
	checkBackoff(r.InitialBackoff, r.MaxBackoff, report)
}

// Codec is how the payloads of a stream are read or written.
type Codec struct {
	Schema               string   `key:"schema,required" example:"json" enum:"json|raw|text|proto|flat_buffer|avro" doc:"The form of the payloads in Iggy."`
	AvroSchemaJSON       string   `key:"avro_schema_json" example:"{}" doc:"avro: the schema itself. It wins over the path."`
	AvroSchemaPath       string   `key:"avro_schema_path" example:"schemas/order.avsc" doc:"avro: a file with the schema."`
	AvroReaderSchemaJSON string   `key:"avro_reader_schema_json,new" example:"{}" doc:"avro, sinks: a newer schema to read the payloads as; what they lack gets its default. It wins over the path."`
	AvroReaderSchemaPath string   `key:"avro_reader_schema_path,new" example:"schemas/order-2.avsc" doc:"avro, sinks: a file with that newer schema."`
	AvroLogicalTypes     string   `key:"avro_logical_types,new" default:"numbers" enum:"numbers|rfc3339" doc:"avro: how logical dates and times stand in JSON."`
	ProtoSchemaPath      string   `key:"proto_schema_path,new" example:"schemas/order.proto" doc:"proto: a .proto file with the message type."`
	ProtoIncludePaths    []string `key:"proto_include_paths,new" example:"[schemas]" doc:"proto: directories in which imports are looked for."`
	ProtoDescriptorSet   string   `key:"proto_descriptor_set_path,new" example:"schemas/orders.binpb" doc:"proto: a compiled descriptor set, in place of the .proto file."`
	ProtoMessageType     string   `key:"proto_message_type,new" example:"shop.Order" doc:"proto: the full name of the message type."`
	ProtoJSON            string   `key:"proto_json,new" default:"canonical" enum:"canonical|plain" doc:"proto: the form of messages in JSON: the canonical mapping of protobuf, or plain field names and numbers."`
	FlatBufferSchemaPath string   `key:"flat_buffer_schema_path,new" example:"schemas/order.bfbs" doc:"flat_buffer: a binary schema (.bfbs)."`
	FlatBufferRootTable  string   `key:"flat_buffer_root_table,new" example:"shop.Order" doc:"flat_buffer: the root table, where it is not the one of the schema."`
}

// SinkStream is one entry of a sink's streams.
type SinkStream struct {
	Stream string   `key:"stream,required" example:"orders" doc:"The stream. A number is taken for a numeric id."`
	Topics []string `key:"topics,required" example:"[created, changed]" doc:"The topics, each consumed on its own."`
	Codec
	BatchLength    uint32        `key:"batch_length" default:"1000" min:"1" doc:"The most messages of one poll and so of one batch."`
	PollInterval   time.Duration `key:"poll_interval" default:"5ms" doc:"The time between polls that do not bring a full batch."`
	ConsumerGroup  string        `key:"consumer_group" example:"iggy-connect-sink-my_connector" doc:"The consumer group. Default: iggy-connect-sink-KEY."`
	Parallelism    uint32        `key:"parallelism,new" default:"1" min:"1" max:"256" doc:"How many members of the group this runtime adds for each topic."`
	StartFrom      StartFrom     `key:"start_from,new" default:"first" enum:"first|last|offset|timestamp" doc:"Where a group without a stored offset begins."`
	StartOffset    uint64        `key:"start_offset,new" example:"0" doc:"The offset for start_from = offset."`
	StartTimestamp time.Time     `key:"start_timestamp,new" example:"2026-01-31T12:00:00Z" doc:"The time for start_from = timestamp: RFC 3339, or microseconds since 1970."`
}

func (s *SinkStream) check(report reporter) {
	checkName(s.Stream, "stream", report)
	for _, topic := range s.Topics {
		checkName(topic, "topics", report)
	}
	if s.ConsumerGroup != "" {
		checkName(s.ConsumerGroup, "consumer_group", report)
	}
	if s.StartFrom == StartTimestamp && s.StartTimestamp.IsZero() {
		report("start_timestamp", "missing, but required with start_from = \"timestamp\"")
	}
}

// StartFrom is where a consumer group without a stored offset begins.
type StartFrom string

const (
	StartFirst     StartFrom = "first"
	StartLast      StartFrom = "last"
	StartOffset    StartFrom = "offset"
	StartTimestamp StartFrom = "timestamp"
)

// SourceStream is one entry of a source's streams.
type SourceStream struct {
	Stream string `key:"stream,required" example:"orders" doc:"The stream, created when missing. A number is taken for a numeric id."`
	Topic  string `key:"topic,required" example:"created" doc:"The topic, created when missing."`
	Codec
	BatchLength        uint32        `key:"batch_length" default:"1000" doc:"The most messages of one send request. 0: as many as fit."`
	LingerTime         time.Duration `key:"linger_time" default:"5ms" doc:"How long a request that is not full waits for more messages."`
	Partitioning       Partitioning  `key:"partitioning,new" default:"balanced" enum:"balanced|key|partition" doc:"How messages are spread over the partitions of the topic."`
	PartitionKey       string        `key:"partition_key,new" example:"/customer/id" doc:"For partitioning = key: a JSON pointer into the payload, such as /customer/id. Messages with the same value go to the same partition."`
	PartitionKeyHeader string        `key:"partition_key_header,new" example:"tenant" doc:"For partitioning = key: the header whose value is the key, in place of partition_key."`
	Partition          *uint32       `key:"partition,new" example:"0" doc:"The number for partitioning = partition."`
}

func (s *SourceStream) check(report reporter) {
	checkName(s.Stream, "stream", report)
	checkName(s.Topic, "topic", report)
	switch s.Partitioning {
	case PartitionByKey:
		if (s.PartitionKey == "") == (s.PartitionKeyHeader == "") {
			report("partition_key", "partitioning = \"key\" needs one of partition_key and partition_key_header")
		}
	case PartitionFixed:
		if s.Partition == nil {
			report("partition", "missing, but required with partitioning = \"partition\"")
		}
	}
	if s.PartitionKey != "" && !strings.HasPrefix(s.PartitionKey, "/") {
		report("partition_key", "Invalid partition key: '%s' is not a JSON pointer, which begins with a slash", s.PartitionKey)
	}
}

// Partitioning is how a source spreads messages over partitions.
type Partitioning string

const (
	PartitionBalanced Partitioning = "balanced"
	PartitionByKey    Partitioning = "key"
	PartitionFixed    Partitioning = "partition"
)

const maxNameLength = 255 // of streams, topics and groups, in bytes

func checkName(name, key string, report reporter) {
	if name == "" || len(name) > maxNameLength {
		report(key, "Invalid %s: '%s' has %d bytes; a name has 1 to %d", strings.ReplaceAll(key, "_", " "), name, len(name), maxNameLength)
	}
}

func (s *Sink) check(report reporter) {
	s.Isolation.check(report)
	s.Common.checkDeadLetter(s.OnMessageError, report)
	if s.consumesDeadLetters() && (s.OnFailure == FailureDeadLetter || s.OnMessageError == MessageDeadLetter) {
		report("dead_letter", "topic %s of stream %s is one that the sink itself consumes: each letter would come back and be another letter", s.DeadLetter.Topic, s.DeadLetter.Stream)
	}
}

func (s *Sink) consumesDeadLetters() bool {
	return s.DeadLetter != nil && slices.ContainsFunc(s.Streams, func(stream SinkStream) bool {
		return stream.Stream == s.DeadLetter.Stream && slices.Contains(stream.Topics, s.DeadLetter.Topic)
	})
}

func (s *Source) check(report reporter) {
	s.Isolation.check(report)
	s.Common.checkDeadLetter(s.OnMessageError, report)
	if len(s.Streams) == 0 {
		report("streams", "No streams configured for source")
	}
}

func (c *Common) checkDeadLetter(onMessageError OnMessageError, report reporter) {
	if c.DeadLetter != nil {
		return
	}
	if c.OnFailure == FailureDeadLetter {
		report("on_failure", "\"dead_letter\" needs a section [dead_letter]")
	}
	if onMessageError == MessageDeadLetter {
		report("on_message_error", "\"dead_letter\" needs a section [dead_letter]")
	}
}

const maxKeyLength = 128

// CheckKey tells why a text cannot be the key of a connector, nil if it can. A key
// is part of file names and URLs and must never lead out of its directory.
func CheckKey(key string) error {
	valid := key != "" && len(key) <= maxKeyLength && key != "." && key != ".."
	for i := range len(key) {
		c := key[i]
		valid = valid && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if valid {
		return nil
	}
	return fmt.Errorf("invalid key %.140q; a key has 1 to %d letters, digits, dots, underscores or dashes, and is neither one dot nor two", key, maxKeyLength)
}
