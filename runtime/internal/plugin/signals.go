// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #include "signals.h"
import "C"

import (
	"math/bits"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// handlerRepairInterval bounds how long a handler that a plugin installs after its open
// stays dangerous.
const handlerRepairInterval = 3 * time.Second

// keepSignalHandlers repairs handlers for as long as the host lives: plugins may install
// them at any time.
func (h *Host) keepSignalHandlers() {
	ticker := time.NewTicker(handlerRepairInterval)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-ticker.C:
			h.repairSignalHandlers()
		}
	}
}

// repairSignalHandlers makes handlers that plugins installed run on the signal stack of
// their thread. Without, they would run on the small stack of a goroutine, and Go ends the
// process when such a handler passes the signal on to Go's own.
func (h *Host) repairSignalHandlers() {
	for repaired := uint64(C.host_repair_signal_handlers()); repaired != 0; repaired &= repaired - 1 {
		number := syscall.Signal(1 + bits.TrailingZeros64(repaired))
		h.logger.Warn("A plugin installed a signal handler without SA_ONSTACK; the flag was added. Whether the signal still reaches the runtime is up to the plugin.",
			"signal", signalName(number))
	}
}

func signalName(number syscall.Signal) string {
	if name := unix.SignalName(number); name != "" {
		return name
	}
	return number.String()
}
