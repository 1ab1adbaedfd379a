// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// Check says what keeps a valid configuration from running as far as that can be known
// without loading its library or connecting to anything.
func Check(configured *config.Connector) []config.Finding {
	c := checker{configured: configured}
	c.checkLibrary()
	c.checkCodecs()
	c.checkTransforms()
	return c.findings
}

// located says where in its file that stands which keeps a connector from starting, as
// far as Check finds it.
func located(configured *config.Connector, err error) error {
	for _, finding := range Check(configured) {
		if finding.Line > 0 {
			return fmt.Errorf("%s:%d: %w", finding.File, finding.Line, err)
		}
	}
	return err
}

type checker struct {
	configured *config.Connector
	findings   []config.Finding
}

// fail adds an error that stands at a key of the document.
func (c *checker) fail(line int, key string, err error) {
	c.findings = append(c.findings, config.Finding{
		File: c.configured.File, Line: line, Key: key, Severity: config.Error, Message: err.Error(),
	})
}

var kinds = map[config.Kind]plugin.Kind{config.KindSink: plugin.KindSink, config.KindSource: plugin.KindSource}

func (c *checker) checkLibrary() {
	path, _ := c.configured.Document.Get("path")
	info, err := plugin.Inspect(c.configured.Common().Path)
	unusable := (*plugin.UnusableError)(nil)
	isolated := c.configured.Common().Mode == config.IsolateProcess
	switch {
	case errors.As(err, &unusable) && unusable.Code == plugin.GoBuilt && isolated:
	case err != nil:
		c.fail(path.Line, "path", err)
	case !slices.Contains(info.Kinds, kinds[c.configured.Kind]):
		c.fail(path.Line, "path", fmt.Errorf("plugin library %s is no %s", info.Path, c.configured.Kind))
	}
}

// checkCodecs builds the codec of each stream entry.
func (c *checker) checkCodecs() {
	if sink := c.configured.Sink; sink != nil {
		for i := range sink.Streams {
			c.checkCodec(i, &sink.Streams[i].Codec)
		}
		return
	}
	for i := range c.configured.Source.Streams {
		c.checkCodec(i, &c.configured.Source.Streams[i].Codec)
	}
}

func (c *checker) checkCodec(entry int, codec *config.Codec) {
	if _, err := NewCodec(codec); err != nil {
		c.fail(c.streamLine(entry), fmt.Sprintf("streams[%d]", entry), err)
	}
}

func (c *checker) streamLine(entry int) int {
	streams, _ := c.configured.Document.Get("streams")
	if entries, ok := streams.Data.([]config.Value); ok && entry < len(entries) {
		return entries[entry].Line
	}
	return 0
}

// checkTransforms builds each enabled transform by itself.
func (c *checker) checkTransforms() {
	for _, t := range c.configured.Common().Transforms {
		if !t.Enabled {
			continue
		}
		if _, err := transform.Build([]transform.Entry{{Type: t.Type, Config: t.Config}}); err != nil {
			c.fail(t.Line, "", err) // it begins with the key
		}
	}
}
