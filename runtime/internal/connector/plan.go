// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// What a sink can promise, as the API shows it.
const (
	atMostOnce  = "at_most_once"
	atLeastOnce = "at_least_once"
)

// planSink loads the library of a sink and builds all that its configuration describes.
func planSink(configured *config.Connector, plugins *plugin.Host) (*sinkPlan, error) {
	library, err := loadSink(&configured.Sink.Common, plugins)
	if err != nil {
		return nil, fmt.Errorf("Failed to load sink container from %s: %w", configured.Sink.Path, err)
	}
	topics, err := planTopics(configured.Sink)
	if err != nil {
		return nil, fmt.Errorf("Failed to set up sink consumers: Invalid configuration: %w", err)
	}
	return &sinkPlan{configured: configured, config: configured.Sink, library: library, topics: topics}, nil
}

func loadSink(cfg *config.Common, plugins *plugin.Host) (*plugin.SinkLibrary, error) {
	if cfg.Mode == config.IsolateProcess {
		return plugins.IsolateSink(cfg.Path, isolationOf(&cfg.Isolation))
	}
	return plugins.LoadSink(cfg.Path)
}

func loadSource(cfg *config.Common, plugins *plugin.Host) (*plugin.SourceLibrary, error) {
	if cfg.Mode == config.IsolateProcess {
		return plugins.IsolateSource(cfg.Path, isolationOf(&cfg.Isolation))
	}
	return plugins.LoadSource(cfg.Path)
}

// planTopics builds the codecs and transforms of every topic of a sink.
func planTopics(cfg *config.Sink) ([]sinkTopic, error) {
	var topics []sinkTopic
	for _, stream := range cfg.Streams {
		decoder, err := NewCodec(&stream.Codec)
		if err != nil {
			return nil, err
		}
		for _, topic := range stream.Topics {
			transforms, err := planTransforms(cfg.Transforms)
			if err != nil {
				return nil, err
			}
			topics = append(topics, sinkTopic{
				parallelism: int(stream.Parallelism),
				options: iggy.ConsumerOptions{
					Stream: stream.Stream, Topic: topic, Group: GroupOf(cfg.Key, stream.ConsumerGroup),
					BatchLength: int(stream.BatchLength), PollInterval: stream.PollInterval,
					CommitMode: commitMode(cfg.OffsetCommit), StartFrom: startFrom(&stream),
				},
				pipeline: func() *schema.SinkPipeline { return schema.NewSinkPipeline(decoder, transforms) },
			})
		}
	}
	return topics, nil
}

func commitMode(configured config.OffsetCommit) iggy.CommitMode {
	if configured == config.AfterConsuming {
		return iggy.AfterConsuming
	}
	return iggy.AfterPolling
}

func startFrom(stream *config.SinkStream) iggy.StartFrom {
	switch stream.StartFrom {
	case config.StartLast:
		return iggy.StartLast()
	case config.StartOffset:
		return iggy.StartAtOffset(stream.StartOffset)
	case config.StartTimestamp:
		return iggy.StartAtTime(stream.StartTimestamp)
	}
	return iggy.StartFirst()
}

// planSource loads the library of a source and builds all that its configuration describes.
func planSource(configured *config.Connector, plugins *plugin.Host) (*sourcePlan, error) {
	cfg := configured.Source
	library, err := loadSource(&cfg.Common, plugins)
	if err != nil {
		return nil, fmt.Errorf("Failed to load source container from %s: %w", cfg.Path, err)
	}
	pipeline, err := planProduction(cfg)
	if err != nil {
		return nil, fmt.Errorf("Failed to set up source producer: Invalid configuration: %w", err)
	}
	p := &sourcePlan{
		configured: configured,
		config:     cfg,
		library:    library,
		pipeline:   pipeline,
		policy: sourcePolicy{
			rejectBatch: cfg.OnMessageError == config.MessageRejectBatch,
			onFailure:   cfg.OnFailure,
			letterBad:   cfg.OnMessageError == config.MessageDeadLetter,
		},
	}
	for _, stream := range cfg.Streams {
		p.streams = append(p.streams, sourceStream{
			options: iggy.ProducerOptions{
				Stream: stream.Stream, Topic: stream.Topic, BatchLength: int(stream.BatchLength),
				Partitioning: partitioning(&stream),
			},
			key: newPartitionKey(&stream),
		})
		p.linger = max(p.linger, stream.LingerTime)
	}
	return p, nil
}

// planProduction builds the codecs and transforms of a source.
func planProduction(cfg *config.Source) (*schema.SourcePipeline, error) {
	transforms, err := planTransforms(cfg.Transforms)
	if err != nil {
		return nil, err
	}
	encoders := make([]schema.Encoder, len(cfg.Streams))
	for i := range cfg.Streams {
		if encoders[i], err = NewCodec(&cfg.Streams[i].Codec); err != nil {
			return nil, err
		}
	}
	return schema.NewSourcePipeline(encoders, transforms), nil
}

// NewCodec returns decoder and encoder of a stream.
func NewCodec(codec *config.Codec) (schema.Codec, error) {
	kind, err := wire.ParseSchema(codec.Schema)
	if err != nil {
		return nil, err
	}
	return schema.NewCodec(schema.Config{
		Schema:                 kind,
		ProtoSchemaPath:        codec.ProtoSchemaPath,
		ProtoIncludePaths:      codec.ProtoIncludePaths,
		ProtoDescriptorSetPath: codec.ProtoDescriptorSet,
		ProtoMessageType:       codec.ProtoMessageType,
		ProtoJSON:              codec.ProtoJSON,
		AvroSchemaJSON:         codec.AvroSchemaJSON,
		AvroSchemaPath:         codec.AvroSchemaPath,
		AvroReaderSchemaJSON:   codec.AvroReaderSchemaJSON,
		AvroReaderSchemaPath:   codec.AvroReaderSchemaPath,
		AvroLogicalTypes:       codec.AvroLogicalTypes,
		FlatBufferSchemaPath:   codec.FlatBufferSchemaPath,
		FlatBufferRootTable:    codec.FlatBufferRootTable,
	})
}

// planTransforms builds the enabled transforms, in the order of the file (decision E8).
func planTransforms(configured []config.Transform) (*transform.Chain, error) {
	var entries []transform.Entry
	for _, t := range configured {
		if t.Enabled {
			entries = append(entries, transform.Entry{Type: t.Type, Config: t.Config})
		}
	}
	chain, err := transform.Build(entries)
	if err != nil {
		return nil, fmt.Errorf("Failed to load transforms: %w", err)
	}
	return chain, nil
}

func (p *sinkPlan) describe() Info {
	info := describe(p.configured)
	info.Path, info.Delivery = p.library.Path(), atMostOnce
	if p.config.OffsetCommit == config.AfterConsuming && p.config.OnFailure != config.FailureDrop {
		info.Delivery = atLeastOnce
	}
	return info
}

func (p *sourcePlan) describe() Info {
	info := describe(p.configured)
	info.Path, info.Generation = p.library.Path(), int(p.library.Generation())
	// Neither generation loses a batch: state is saved only behind delivered ones, so
	// a source that is started again comes back to what was not delivered.
	info.Delivery = atLeastOnce
	return info
}

// describe tells what a configuration says, which is nothing for an invalid one.
func describe(configured *config.Connector) Info {
	info := Info{ID: configured.ID, Name: configured.Key, Enabled: true, Configuration: configured}
	if common := configured.Common(); common != nil {
		info.Name, info.Path, info.Enabled = common.Name, common.Path, common.Enabled
	}
	return info
}

// pluginConfig is the configuration as the plugin gets it. Existing plugins are
// compiled against null where there is none (decision A6).
func pluginConfig(cfg *config.Common) []byte {
	if cfg.PluginConfig == nil {
		return []byte("null")
	}
	return cfg.PluginConfig
}
