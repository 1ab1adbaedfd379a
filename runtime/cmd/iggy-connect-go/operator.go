// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// operatorCommands are those for people who set connectors up and look after them.
func operatorCommands() []*cobra.Command {
	return []*cobra.Command{checkCommand(), connectorsCommand(), dlqCommand(), healthCommand(), previewCommand(), stateCommand(), transformsCommand()}
}
