// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
)

func dlqCommand() *cobra.Command {
	var client apiClient
	c := group("dlq", "Look at dead letters, replay and purge them",
		dlqListCommand(&client), dlqShowCommand(&client), dlqReplayCommand(&client), dlqPurgeCommand(&client))
	client.addFlags(c)
	c.PersistentPreRun = func(*cobra.Command, []string) { _, _ = environment() }
	return c
}

// letterFlags choose letters.
type letterFlags struct {
	connector, stage, reason, since, until string
	letters                                []string
}

func (f *letterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.stage, "stage", "", "only letters of this `STAGE`: decode, transform, encode, headers, consume, send")
	c.Flags().StringVar(&f.reason, "reason", "", "only letters whose reason contains this `TEXT`")
	c.Flags().StringVar(&f.since, "since", "", "only letters from this `TIME` on, such as 2026-01-31T12:00:00Z, or 1h for an hour ago")
	c.Flags().StringVar(&f.until, "until", "", "only letters before this `TIME`")
	c.Flags().StringArrayVar(&f.letters, "letter", nil, "only this `LETTER`, such as 0-17; may be repeated")
	c.Flags().StringVar(&f.connector, "connector", "", "letters of another `CONNECTOR` in the same topic, such as sink/old")
}

// query is the filter as the API takes it.
func (f *letterFlags) query(now time.Time) (url.Values, error) {
	query := url.Values{}
	for name, value := range map[string]string{"connector": f.connector, "stage": f.stage, "reason": f.reason} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, value := range map[string]string{"since": f.since, "until": f.until} {
		at, err := momentOf(value, now)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s %w", name, err)}
		}
		if value != "" {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for _, letter := range f.letters {
		if _, err := deadletter.ParsePlace(letter); err != nil {
			return nil, usageError{fmt.Errorf("--letter %w", err)}
		}
		query.Add("letter", letter)
	}
	return query, nil
}

// momentOf reads a time, or how long ago it is.
func momentOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%q is neither a time such as 2026-01-31T12:00:00Z nor a duration such as 90m", text)
	}
	return at, nil
}

// onLetters makes a command on the dead letters of one connector.
func onLetters(client *apiClient, c *cobra.Command, run func(ctx context.Context, path string, query url.Values, w io.Writer, asJSON bool) error) *cobra.Command {
	var flags letterFlags
	var asJSON bool
	c.Args = exactly(1, "KEY")
	c.RunE = func(c *cobra.Command, args []string) error {
		query, err := flags.query(time.Now())
		if err != nil {
			return err
		}
		id, err := client.find(c.Context(), args[0])
		if err != nil {
			return err
		}
		return run(c.Context(), pathOf(id)+"/dead-letters", query, c.OutOrStdout(), asJSON)
	}
	flags.add(c)
	addJSONFlag(c, &asJSON)
	return c
}

func dlqListCommand(client *apiClient) *cobra.Command {
	var limit int
	c := &cobra.Command{Use: "list KEY", Short: "List what a connector could not deliver"}
	c.Flags().IntVarP(&limit, "limit", "n", 100, "list at most so many `LETTERS`")
	return onLetters(client, c, func(ctx context.Context, path string, query url.Values, w io.Writer, asJSON bool) error {
		query.Set("limit", strconv.Itoa(limit))
		var found api.DeadLetters
		if err := client.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &found); err != nil {
			return err
		}
		return printLetters(w, found, asJSON)
	})
}

func printLetters(w io.Writer, found api.DeadLetters, asJSON bool) error {
	if asJSON {
		return printJSON(w, found)
	}
	rows := [][]string{{"LETTER", "TIME", "STAGE", "FROM", "ATTEMPTS", "SIZE", "REASON"}}
	for i := range found.Letters {
		l := &found.Letters[i]
		rows = append(rows, []string{
			l.Letter, momentText(l.TimeMicros), l.Stage, originOf(l), fmt.Sprint(l.Attempts), fmt.Sprint(l.Size), l.Reason,
		})
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d letters; the topic also holds %d of other connectors and %d messages that are no letters\n",
		len(found.Letters), found.Total, found.Others, found.Foreign)
	return err
}

func momentText(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339) }

// originOf is where a message was when it failed, as stream/topic/partition@offset.
func originOf(l *api.DeadLetter) string {
	from := l.Stream + "/" + l.Topic
	if l.Partition != nil && l.Offset != nil {
		from += fmt.Sprintf("/%d@%d", *l.Partition, *l.Offset)
	}
	return from
}

func dlqShowCommand(client *apiClient) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show KEY LETTER",
		Short: "Show a dead letter with the message itself",
		Args:  exactly(2, "KEY and LETTER"),
		RunE: func(c *cobra.Command, args []string) error {
			place, err := deadletter.ParsePlace(args[1])
			if err != nil {
				return usageError{err}
			}
			id, err := client.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			var found api.DeadLetterContent
			if err := client.call(c.Context(), http.MethodGet, pathOf(id)+"/dead-letters/"+place.String(), nil, &found); err != nil {
				return err
			}
			return printLetter(c.OutOrStdout(), &found, asJSON)
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

func printLetter(w io.Writer, l *api.DeadLetterContent, asJSON bool) error {
	if asJSON {
		return printJSON(w, l)
	}
	headers := string(l.Headers)
	if l.HeadersDropped {
		headers = "dropped: they could not be read"
	}
	payload := fmt.Sprintf("%d bytes %x", l.Size, l.PayloadBase64)
	if l.Payload != nil {
		payload = *l.Payload
	}
	if err := printTable(w, [][]string{
		{"letter", l.Letter},
		{"connector", l.Connector},
		{"time", momentText(l.TimeMicros)},
		{"stage", l.Stage},
		{"reason", l.Reason},
		{"attempts", fmt.Sprint(l.Attempts)},
		{"from", originOf(&l.DeadLetter)},
		{"message id", l.MessageID},
		{"headers", headers},
	}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, payload)
	return err
}

func dlqReplayCommand(client *apiClient) *cobra.Command {
	var target string
	c := &cobra.Command{
		Use:   "replay KEY",
		Short: "Deliver dead letters once more: to the topic they come from, or straight to the sink",
		Long: "Deliver dead letters once more: to the topic they come from, or straight to the sink.\n\n" +
			"A letter is done when it has arrived for certain; what is refused stays. A replay that was interrupted is\n" +
			"repeated as it is: it may deliver up to 1000 letters again, with the same message ids.",
	}
	c.Flags().StringVar(&target, "to", "", "`TARGET`: topic, or connector for a sink")
	return onLetters(client, c, func(ctx context.Context, path string, query url.Values, w io.Writer, asJSON bool) error {
		if target != "topic" && target != "connector" {
			return usageError{errors.New("say --to topic or --to connector")}
		}
		query.Set("target", target)
		return settle(ctx, client, http.MethodPost, path+"/replay?"+query.Encode(), deadletter.Replayed, w, asJSON)
	})
}

func dlqPurgeCommand(client *apiClient) *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "purge KEY", Short: "Give dead letters up: mark them as done without any delivery"}
	c.Flags().BoolVar(&all, "all", false, "purge without a filter")
	return onLetters(client, c, func(ctx context.Context, path string, query url.Values, w io.Writer, asJSON bool) error {
		if len(query) == 0 && !all {
			return usageError{errors.New("give a filter, or --all")}
		}
		return settle(ctx, client, http.MethodDelete, strings.TrimSuffix(path+"?"+query.Encode(), "?"), deadletter.Purged, w, asJSON)
	})
}

// settle asks for a replay or a purge and fails when letters were refused.
func settle(ctx context.Context, client *apiClient, method, path, outcome string, w io.Writer, asJSON bool) error {
	var settled api.Settled
	if err := client.call(ctx, method, path, nil, &settled); err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(w, settled); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(w, "%d letters %s\n", settled.Done, outcome); err != nil {
		return err
	}
	if settled.Refused > 0 {
		return fmt.Errorf("refused: %d letters stay, the first because %s", settled.Refused, onOneLine.Replace(settled.Reason))
	}
	return nil
}
