// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// Loaded tells whether the library at an absolute path is loaded, and whether
// another file lies there now; the loaded one stays in use until the process ends.
func (h *Host) Loaded(path string) (loaded, changed bool) {
	h.loading.Lock()
	defer h.loading.Unlock()
	l := h.libraries[path]
	return l != nil, l != nil && l.changed()
}
