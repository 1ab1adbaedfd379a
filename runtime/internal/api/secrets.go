// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// secretNames are the words that make the value of a key a secret. A name of two words is met by
// these words side by side, however they are joined: api_key, api-key, apiKey, apikey.
// docs/openapi.yaml lists them for users.
var secretNames = [][]string{
	{"password"}, {"passwd"}, {"pwd"}, {"passphrase"}, {"secret"}, {"secrets"}, {"token"}, {"credential"}, {"credentials"},
	{"dsn"}, {"jwt"}, {"bearer"}, {"authorization"}, {"cookie"},
	{"api", "key"}, {"access", "key"}, {"private", "key"}, {"account", "key"}, {"shared", "key"},
	{"encryption", "key"}, {"signing", "key"}, {"connection", "string"},
}

// isSecret tells by the name of a key whether its value is a secret.
func isSecret(name string) bool {
	words := splitWords(name)
	return slices.ContainsFunc(secretNames, func(secret []string) bool {
		joined := strings.Join(secret, "")
		for i, word := range words {
			if word == joined || i+len(secret) <= len(words) && slices.Equal(words[i:i+len(secret)], secret) {
				return true
			}
		}
		return false
	})
}

// splitWords splits api_key, api-key, apiKey and APIKey alike into api and key.
func splitWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		afterLower := i > 0 && !unicode.IsUpper(runes[i-1])
		beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if unicode.IsUpper(r) && (afterLower || beforeLower) {
			flush()
		}
		word = append(word, r)
	}
	flush()
	return words
}

var (
	// userInfo is what stands before the last @ of the authority of a URL.
	userInfo = regexp.MustCompile(`://[^/?#\s]*@`)
	// reference is replaced when a connector starts; it names a secret without telling it.
	reference = regexp.MustCompile(`\$\{(?:env|file):[^}]*\}`)
)

const maskedUserInfo = "://" + config.Masked + "@"

// mask returns a copy in which secrets are replaced: strings and numbers below a key that names a
// secret, and the user-info of URLs anywhere.
func mask(v config.Value) config.Value { return maskBelow(v, false) }

func maskBelow(v config.Value, secret bool) config.Value {
	switch data := v.Data.(type) {
	case *config.Table:
		masked := config.NewTable()
		for _, name := range data.Names() {
			masked.Set(name, maskBelow(member(data, name), secret || isSecret(name)))
		}
		v.Data = masked
	case []config.Value:
		masked := make([]config.Value, len(data))
		for i, item := range data {
			masked[i] = maskBelow(item, secret)
		}
		v.Data = masked
	case json.Number:
		if secret {
			v.Data = config.Masked
		}
	case string:
		v.Data = maskText(data, secret)
	}
	return v
}

func maskText(text string, secret bool) string {
	if !secret {
		return userInfo.ReplaceAllStringFunc(text, func(found string) string {
			if isReference(strings.Trim(found, ":/@")) {
				return found
			}
			return maskedUserInfo
		})
	}
	if isReference(text) {
		return text
	}
	return config.Masked
}

// isReference reports whether a text holds nothing but references (and the colon between user and
// password). An empty text hides nothing either.
func isReference(text string) bool {
	return strings.Trim(reference.ReplaceAllString(text, ""), ":") == ""
}

// hasMask reports whether any text could be a masked one.
func hasMask(v config.Value) bool {
	switch data := v.Data.(type) {
	case *config.Table:
		return slices.ContainsFunc(data.Names(), func(name string) bool { return hasMask(member(data, name)) })
	case []config.Value:
		return slices.ContainsFunc(data, hasMask)
	case string:
		return strings.Contains(data, config.Masked)
	}
	return false
}

// unmask returns a copy in which masked values are those that stand in the same place of stored.
// The error begins with that place.
func unmask(v, stored config.Value) (config.Value, error) { return unmaskBelow(v, stored, false) }

func unmaskBelow(v, stored config.Value, secret bool) (config.Value, error) {
	switch data := v.Data.(type) {
	case *config.Table:
		return unmaskTable(data, stored, secret)
	case []config.Value:
		return unmaskArray(data, stored, secret)
	case string:
		if !isMask(data, secret) {
			return v, nil
		}
		// The text around a masked user-info must be the same, too: a secret is never sent to
		// another host than the one it was given for.
		if maskBelow(stored, secret).Data != v.Data {
			return v, fmt.Errorf(": %s means to keep the present value, but there is none to keep", config.Masked)
		}
		return stored, nil
	}
	return v, nil
}

func isMask(text string, secret bool) bool {
	if secret {
		return text == config.Masked
	}
	return strings.Contains(text, maskedUserInfo)
}

func unmaskTable(table *config.Table, stored config.Value, secret bool) (config.Value, error) {
	beside, _ := stored.Data.(*config.Table)
	unmasked := config.NewTable()
	for _, name := range table.Names() {
		value, err := unmaskBelow(member(table, name), member(beside, name), secret || isSecret(name))
		if err != nil {
			return config.Value{}, fmt.Errorf(".%s%w", name, err)
		}
		unmasked.Set(name, value)
	}
	return config.Value{Data: unmasked}, nil
}

func unmaskArray(items []config.Value, stored config.Value, secret bool) (config.Value, error) {
	beside, _ := stored.Data.([]config.Value)
	unmasked := make([]config.Value, len(items))
	for i, item := range items {
		var present config.Value
		if i < len(beside) {
			present = beside[i]
		}
		value, err := unmaskBelow(item, present, secret)
		if err != nil {
			return config.Value{}, fmt.Errorf("[%d]%w", i, err)
		}
		unmasked[i] = value
	}
	return config.Value{Data: unmasked}, nil
}
