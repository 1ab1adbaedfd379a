// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

// Options are what a [Server] needs.
type Options struct {
	Version    string // of the runtime
	HTTP       config.HTTP
	Metrics    *metrics.Set
	Connectors Connectors
	Configs    Configs
	Log        *slog.Logger
	Recent     *telemetry.Recent // lines of the log
}

// Server serves the API.
type Server struct {
	runtimeVersion string
	settings       config.HTTP
	metrics        *metrics.Set
	connectors     Connectors
	configs        Configs
	log            *slog.Logger
	recent         *telemetry.Recent

	echo    *echo.Echo
	methods map[string][]string // by path of the route
	http    *http.Server
	life    context.Context // of changes that requests started
	end     context.CancelFunc
}

// NewServer checks the options and returns a server that does not listen yet.
func NewServer(options Options) (*Server, error) {
	s := &Server{
		runtimeVersion: options.Version, settings: options.HTTP, metrics: options.Metrics,
		connectors: options.Connectors, configs: options.Configs, log: options.Log, recent: options.Recent,
		echo: echo.New(), methods: make(map[string][]string),
	}
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.recoverPanic)
	if s.settings.CORS.Enabled {
		s.echo.Use(newCORS(s.settings.CORS).middleware(s.allowed))
	}
	if s.settings.APIKey != "" {
		s.echo.Use(requireKey(string(s.settings.APIKey)))
	}
	if err := s.routes(); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s.echo,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func (s *Server) routes() error {
	s.get("/", s.welcome)
	s.get("/health", s.health)
	s.get("/health/live", s.health)
	s.get("/health/ready", s.ready)
	s.get("/stats", s.stats)
	s.get("/plugins", s.plugins)
	s.get("/openapi.yaml", s.description)
	s.get("/logs", s.logs)
	if err := s.page(); err != nil {
		return err
	}
	s.family(config.KindSource)
	s.family(config.KindSink)
	s.get("/sources/:key/state", s.state)
	s.add(http.MethodDelete, "/sources/:key/state", s.deleteState)
	s.get("/sinks/:key/offsets", s.offsets)
	s.add(http.MethodPut, "/sinks/:key/offsets", s.setOffsets)
	if err := s.metricsRoute(); err != nil {
		return err
	}
	s.profiles()
	s.refuseOtherMethods()
	return nil
}

// family adds the routes that sources and sinks have alike.
func (s *Server) family(kind config.Kind) {
	list := "/" + string(kind) + "s"
	one := list + "/:key"
	s.get(list, func(c echo.Context) error { return s.list(c, kind) })
	s.get(one, s.of(kind, s.details))
	s.get(one+"/transforms", s.of(kind, s.transforms))
	s.get(one+"/configs", s.of(kind, s.versions))
	s.add(http.MethodPost, one+"/configs", s.of(kind, s.create))
	s.add(http.MethodDelete, one+"/configs", s.of(kind, s.delete))
	s.get(one+"/configs/active", s.of(kind, s.active))
	s.add(http.MethodPut, one+"/configs/active", s.of(kind, s.activate))
	s.get(one+"/configs/plugin", s.of(kind, s.pluginConfig))
	s.add(http.MethodPost, one+"/configs/validate", s.of(kind, s.validate))
	s.get(one+"/configs/:version", s.of(kind, s.version))
	s.get(one+"/log-level", s.of(kind, s.logLevel))
	s.add(http.MethodPut, one+"/log-level", s.of(kind, s.setLogLevel))
	s.get(one+"/dead-letters", s.of(kind, s.deadLetters))
	s.add(http.MethodDelete, one+"/dead-letters", s.of(kind, s.purgeDeadLetters))
	s.get(one+"/dead-letters/:letter", s.of(kind, s.deadLetter))
	s.add(http.MethodPost, one+"/dead-letters/replay", s.of(kind, s.replayDeadLetters))
	for action, change := range map[string]func(context.Context, config.ID) error{
		"restart": s.connectors.Restart,
		"stop":    s.connectors.Stop,
		"start":   s.connectors.Start,
		"pause":   s.connectors.Pause,
		"resume":  s.connectors.Resume,
	} {
		s.add(http.MethodPost, one+"/"+action, s.of(kind, s.control(change)))
	}
}

// of gives a handler the connector that the path names.
func (s *Server) of(kind config.Kind, handle func(echo.Context, config.ID) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		key, err := pathParam(c, "key")
		if err != nil {
			return err
		}
		return handle(c, config.ID{Kind: kind, Key: key})
	}
}

// get adds a route that answers HEAD too; net/http leaves the body out.
func (s *Server) get(path string, handle echo.HandlerFunc) {
	s.add(http.MethodGet, path, handle)
	s.add(http.MethodHead, path, handle)
}

func (s *Server) add(method, path string, handle echo.HandlerFunc) {
	s.echo.Add(method, path, handle)
	s.methods[path] = append(s.methods[path], method)
}

// refuseOtherMethods keeps the router from answering OPTIONS by itself, and from taking the last
// part of a path such as configs/validate for a version when the method does not fit.
func (s *Server) refuseOtherMethods() {
	for path, methods := range s.methods {
		for _, method := range []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		} {
			if !slices.Contains(methods, method) {
				s.echo.Add(method, path, func(echo.Context) error { return echo.ErrMethodNotAllowed })
			}
		}
	}
}

func (s *Server) metricsRoute() error {
	path := s.settings.Metrics.Endpoint
	if !s.settings.Metrics.Enabled {
		return nil
	}
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, ":*?#") {
		return fmt.Errorf("http.metrics.endpoint %q: expected a path that starts with / and has no special character", path)
	}
	if _, taken := s.methods[path]; taken {
		return fmt.Errorf("http.metrics.endpoint %q is the path of another endpoint", path)
	}
	s.get(path, func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderContentType, metrics.ContentType)
		_, err := s.metrics.WriteTo(c.Response())
		return err
	})
	return nil
}

// recoverPanic makes a fault of one handler an answer of this request alone.
func (s *Server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				s.log.Error("request handler panicked", "cause", cause, "stack", string(debug.Stack()))
				err = errors.New("internal error, see the log")
			}
		}()
		return next(c)
	}
}

// Serve answers requests on the listener until [Server.Shutdown]. It returns nil then.
func (s *Server) Serve(listener net.Listener) error {
	s.log.Info("Started iggy-connectors HTTP API on: " + listener.Addr().String())
	if s.settings.APIKey == "" && !isLoopback(listener.Addr()) {
		s.log.Warn("The HTTP API is open to the network without an API key: set http.api_key", "address", listener.Addr().String())
	}
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("HTTP API: %w", err)
	}
	return nil
}

// Shutdown stops listening and waits for running requests. When the context ends first, their
// changes are cancelled and their connections closed.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.end()
	if err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// kinds is the order in which /stats and /health/ready go through the connectors.
var kinds = []config.Kind{config.KindSource, config.KindSink}

// each returns the connectors of both kinds that pass the filter.
func (s *Server) each(filter func(Connector) bool) map[config.Kind][]Connector {
	found := make(map[config.Kind][]Connector, len(kinds))
	for _, kind := range kinds {
		found[kind] = slices.DeleteFunc(slices.Clone(s.connectors.List(kind)), func(c Connector) bool { return !filter(c) })
	}
	return found
}
