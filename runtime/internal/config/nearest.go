// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// didYouMean suggests the known name that is nearest to an unknown one, in the
// form of an addition to a message. It is empty if none is near enough.
func didYouMean(unknown string, known []string) string {
	best, distance := "", max(3, len(unknown)*3/10)+1
	for _, name := range known {
		if d := editDistance(unknown, name); d < distance {
			best, distance = name, d
		}
	}
	if best == "" || distance >= len(best) {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance is the Levenshtein distance of two short names, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
