// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/provider"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

func previewCommand() *cobra.Command {
	var p previewer
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use:   "preview",
		Short: "Show what becomes of real messages of a sink, step by step, without its plugin",
		Long: `Show what becomes of real messages of a sink, step by step, without its plugin.

Messages are read from the topics of the sink by a consumer outside of any group, which
stores no offset: neither the sink nor anything else can notice.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			if err := p.preview(c.Context(), path); err != nil {
				return err
			}
			return p.print(c.OutOrStdout(), asJSON)
		},
	}
	c.Flags().StringVar(&p.key, "connector", "", "`KEY` of the sink, or sink/KEY")
	c.Flags().Uint32VarP(&p.count, "count", "n", 10, "how many messages to show of each partition")
	c.Flags().StringVar(&p.from, "from", "last", "first, last, or the `OFFSET` to begin with in each partition")
	c.Flags().DurationVar(&p.timeout, "timeout", 30*time.Second, "how long to try")
	addConfigFlag(c, &path)
	addJSONFlag(c, &asJSON)
	return c
}

// previewer collects the ways of messages through a sink.
type previewer struct {
	key     string
	count   uint32
	from    string
	timeout time.Duration

	client   *iggy.Client
	messages []journey
}

// journey is the way of one message.
type journey struct {
	Stream    string       `json:"stream"`
	Topic     string       `json:"topic"`
	Partition uint32       `json:"partition"`
	Offset    uint64       `json:"offset"`
	Polled    shownMessage `json:"polled"` // the bytes as they lie in Iggy
	Steps     []station    `json:"steps"`  // after the decoder and after each transform that acted
	Filtered  bool         `json:"filtered,omitempty"`
	Error     string       `json:"error,omitempty"`
}

// station is a message after one step.
type station struct {
	Step string `json:"step"`
	shownMessage
}

// maxPreview keeps an answer of the server, and the output, within bounds.
const maxPreview = 1000

func (p *previewer) check() error {
	if p.key == "" {
		return usageError{errors.New("preview needs --connector KEY")}
	}
	if p.count < 1 || p.count > maxPreview {
		return usageError{fmt.Errorf("-n %d is not between 1 and %d", p.count, maxPreview)}
	}
	if _, err := p.start(0, 0); err != nil {
		return usageError{err}
	}
	return nil
}

// start is the offset to begin with in a partition with so many messages up to the
// current one.
func (p *previewer) start(current, messages uint64) (uint64, error) {
	switch p.from {
	case "first":
		return current + 1 - min(messages, current+1), nil
	case "last":
		return current + 1 - min(uint64(p.count), messages, current+1), nil
	}
	offset, err := strconv.ParseUint(p.from, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--from %q is neither first nor last nor an offset", p.from)
	}
	return offset, nil
}

func (p *previewer) preview(ctx context.Context, path string) error {
	environ, _ := environment()
	loaded, err := config.LoadRuntime(path, environ)
	if err != nil {
		return err
	}
	previews, err := p.load(ctx, loaded.Runtime.Connectors, environ)
	if err != nil {
		return err
	}
	connection := iggyConfig(loaded.Runtime.Iggy, slog.New(slog.DiscardHandler))
	if err := connection.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	p.client = iggy.NewClient(connection)
	defer p.client.Close(ctx)
	if err := p.client.WaitUp(ctx); err != nil {
		return fmt.Errorf("cannot reach Iggy at %s: %w", connection.Address, errors.Join(p.client.Err(), ignoreTimeout(err)))
	}
	for _, preview := range previews {
		if err := p.readTopic(ctx, preview); err != nil {
			return err
		}
	}
	return nil
}

// ignoreTimeout leaves out the end of the patience where there is a better reason.
func ignoreTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// load reads the active configuration of the sink.
func (p *previewer) load(ctx context.Context, section config.Connectors, environ config.Environment) ([]*connector.Preview, error) {
	configurations, err := provider.New(section, environ, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	key := strings.TrimPrefix(p.key, string(config.KindSink)+"/") // as other commands name it
	configured, err := configurations.ActiveOf(ctx, config.ID{Kind: config.KindSink, Key: key})
	if err != nil {
		return nil, fmt.Errorf("%w; only sinks can be previewed: messages of a source are in Iggy after its transforms", err)
	}
	if err := configured.Err(); err != nil {
		return nil, err
	}
	return connector.NewPreviews(configured.Sink)
}

func (p *previewer) readTopic(ctx context.Context, preview *connector.Preview) error {
	topic, err := p.client.Topic(ctx, preview.Stream, preview.Topic)
	if err != nil {
		return fmt.Errorf("stream %q, topic %q: %w", preview.Stream, preview.Topic, err)
	}
	if topic == nil {
		return fmt.Errorf("stream %q, topic %q: there is no such topic", preview.Stream, preview.Topic)
	}
	for _, partition := range topic.Partitions {
		if err := p.readPartition(ctx, preview, partition); err != nil {
			return err
		}
	}
	return nil
}

func (p *previewer) readPartition(ctx context.Context, preview *connector.Preview, partition iggcon.PartitionContract) error {
	if partition.MessagesCount == 0 {
		return nil
	}
	offset, err := p.start(partition.CurrentOffset, partition.MessagesCount)
	if err != nil {
		return err
	}
	atOnce := countThatFits(partition.SizeBytes / partition.MessagesCount)
	for left := p.count; left > 0; {
		batch, err := p.client.Peek(ctx, preview.Stream, preview.Topic, partition.Id, offset, min(left, atOnce))
		if err != nil || batch == nil {
			return err
		}
		left -= min(left, uint32(batch.Len()))
		offset = batch.LastOffset() + 1
		p.followAll(preview, batch)
	}
	return nil
}

// countThatFits is how many messages of a size one answer of the server may hold.
func countThatFits(average uint64) uint32 {
	const answer = 8 << 20
	return uint32(max(1, min(maxPreview, answer/max(1, average))))
}

func (p *previewer) followAll(preview *connector.Preview, batch *iggy.Batch) {
	defer batch.Release()
	var polled iggy.PolledMessage
	for batch.Next(&polled) {
		p.messages = append(p.messages, follow(preview, batch.Partition, &polled))
	}
}

// follow takes a message through the steps of the sink.
func follow(preview *connector.Preview, partition uint32, polled *iggy.PolledMessage) journey {
	headers, _ := preview.Headers(polled) // the steps report an error
	way := journey{
		Stream: preview.Stream, Topic: preview.Topic, Partition: partition, Offset: polled.Offset,
		Polled: showMessage(wire.SchemaRaw, polled.Payload, headers), Steps: []station{},
	}
	kept, err := preview.Steps(polled, func(step string, m *schema.Message) {
		way.Steps = append(way.Steps, station{step, showMessage(m.Schema(), m.Bytes(), m.Headers())})
	})
	if err != nil {
		way.Error = err.Error()
	}
	way.Filtered = err == nil && !kept
	return way
}

func (p *previewer) print(w io.Writer, asJSON bool) error {
	if asJSON {
		if p.messages == nil {
			p.messages = []journey{}
		}
		return printJSON(w, p.messages)
	}
	if len(p.messages) == 0 {
		_, err := fmt.Fprintln(w, "no messages")
		return err
	}
	for i := range p.messages {
		if err := p.messages[i].print(w); err != nil {
			return err
		}
	}
	return nil
}

func (j *journey) print(w io.Writer) error {
	fmt.Fprintf(w, "%s/%s, partition %d, offset %d\n", j.Stream, j.Topic, j.Partition, j.Offset)
	rows := [][]string{{"  polled", "", j.Polled.String()}}
	for _, s := range j.Steps {
		rows = append(rows, []string{"  " + s.Step, s.Schema, s.shownMessage.String()})
	}
	switch {
	case j.Error != "":
		rows = append(rows, []string{"  error", "", j.Error})
	case j.Filtered:
		rows = append(rows, []string{"  filtered", "", ""})
	}
	return printTable(w, rows)
}
