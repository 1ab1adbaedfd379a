// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"fmt"
	"strings"
)

// documentPath is where the page lies in the repository.
const documentPath = "docs/abi.md"

// Generated returns the files that follow from connector.h, by their path.
func Generated() map[string][]byte {
	return map[string][]byte{documentPath: contract().markdown()}
}

const pageHead = `<!--
Licensed to the Apache Software Foundation (ASF) under one or more contributor
license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
SPDX-License-Identifier: Apache-2.0

Generated from the comments of abi/connector.h by: go generate ./abi
-->

# The plugin ABI

This page is [` + "`abi/connector.h`" + `](../abi/connector.h), to read. [` + "`wire.md`" + `](../abi/wire.md) has the layout of the
bytes; ` + "`iggy-connect-go plugins verify`" + ` checks a library against the rules.
`

func (d document) markdown() []byte {
	var page strings.Builder
	page.WriteString(pageHead)
	writeBlocks(&page, d.intro)
	page.WriteString("\n## Rules for the whole border\n")
	for _, rule := range d.rules {
		fmt.Fprintf(&page, "\n**%s.** %s\n", rule.label, rule.text)
	}
	for _, s := range d.sections {
		fmt.Fprintf(&page, "\n## %s\n", s.title)
		for _, declared := range s.declarations {
			writeDeclaration(&page, declared)
		}
	}
	return []byte(page.String())
}

func writeDeclaration(page *strings.Builder, d declaration) {
	if d.name != "" {
		fmt.Fprintf(page, "\n### %s\n", d.name)
	}
	writeBlocks(page, d.comment)
	if d.code != "" {
		fmt.Fprintf(page, "\n```c\n%s\n```\n", d.code)
	}
}

func writeBlocks(page *strings.Builder, blocks []block) {
	listed := false
	for _, b := range blocks {
		if !listed || b.label == "" { // the points of a list stand close together
			page.WriteByte('\n')
		}
		listed = b.label != ""
		if listed {
			page.WriteString("- **" + b.label + ":**")
			if b.text != "" {
				page.WriteByte(' ')
			}
		}
		page.WriteString(b.text + "\n")
		writeItems(page, b)
	}
}

func writeItems(page *strings.Builder, b block) {
	indent := ""
	if b.label != "" {
		indent = "  "
	} else if len(b.items) > 0 {
		page.WriteByte('\n')
	}
	for _, item := range b.items {
		switch {
		case item.label == "":
			fmt.Fprintf(page, "\n%s%s\n", indent, item.text)
		case strings.HasPrefix(item.label, "IGGY_"):
			fmt.Fprintf(page, "%s- `%s`: %s\n", indent, item.label, item.text)
		default:
			fmt.Fprintf(page, "%s- **%s:** %s\n", indent, item.label, item.text)
		}
	}
}
