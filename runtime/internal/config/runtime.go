// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Runtime is the configuration of the process.
type Runtime struct {
	HTTP       HTTP       `key:"http" doc:"The HTTP control API."`
	Iggy       Iggy       `key:"iggy" doc:"The connection to the Iggy server."`
	State      State      `key:"state" doc:"Where source connectors keep their state."`
	Connectors Connectors `key:"connectors" doc:"Where the connector configurations come from."`
	Supervisor Supervisor `key:"supervisor" doc:"How connectors that ended are started again."`
	Plugins    Plugins    `key:"plugins" doc:"How plugin calls are watched."`
	Shutdown   Shutdown   `key:"shutdown" doc:"How the process ends."`
	Telemetry  Telemetry  `key:"telemetry" doc:"Export of logs and traces by OpenTelemetry."`
	Logging    Logging    `key:"logging" doc:"What goes to the standard output."`
}

// HTTP is the section [http].
type HTTP struct {
	Enabled bool    `key:"enabled" default:"true" doc:"Whether there is an HTTP listener at all."`
	Address string  `key:"address" default:"127.0.0.1:8081" doc:"Where to listen, as host:port. Port 0 takes any free port and logs it."`
	APIKey  Secret  `key:"api_key,secret" default:"" doc:"What clients must send in the header api-key. Empty: no authentication."`
	CORS    CORS    `key:"cors" doc:"Access by web pages of other origins."`
	Metrics Metrics `key:"metrics" doc:"Metrics in the Prometheus text format."`
	Pprof   bool    `key:"pprof,new" default:"false" doc:"Whether profiles of the process are served under /debug/pprof/. Needs api_key."`
	TLS     HTTPTLS `key:"tls" doc:"Encryption of the HTTP API."`
}

func (h *HTTP) check(report reporter) {
	if _, _, err := splitAddress(h.Address); h.Enabled && err != nil {
		report("address", "Invalid address: '%s' %v", withoutCredentials(h.Address), err)
	}
	if key := string(h.APIKey); h.Enabled && (!httpguts.ValidHeaderFieldValue(key) || strings.Trim(key, " \t") != key) {
		report("api_key", "no request could have it in a header: it begins or ends with a space, or holds a line end or another control character")
	}
	if h.Enabled && h.Pprof && h.APIKey == "" {
		report("pprof", "needs api_key: profiles show what the process works on")
	}
}

// CORS is the section [http.cors].
type CORS struct {
	Enabled             bool     `key:"enabled" default:"false" doc:"Whether the CORS headers are sent and preflight requests answered."`
	AllowedMethods      []string `key:"allowed_methods" default:"[GET, POST, PUT, DELETE]" doc:"HTTP methods, in any case."`
	AllowedOrigins      []string `key:"allowed_origins" default:"[*]" doc:"Exact origins, or * for any. Empty: none."`
	AllowedHeaders      []string `key:"allowed_headers" default:"[content-type]" doc:"Request headers."`
	ExposedHeaders      []string `key:"exposed_headers" default:"[]" doc:"Response headers that pages may read."`
	AllowCredentials    bool     `key:"allow_credentials" default:"false" doc:"Whether cookies and authentication may be sent. Not together with the origin *."`
	AllowPrivateNetwork bool     `key:"allow_private_network" default:"false" doc:"Whether public pages may reach this private address."`
}

var corsMethods = []string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead,
	http.MethodOptions, http.MethodConnect, http.MethodPatch, http.MethodTrace,
}

func (c *CORS) check(report reporter) {
	notEmpty := func(list []string) []string {
		return slices.DeleteFunc(list, func(s string) bool { return s == "" })
	}
	c.AllowedMethods, c.AllowedHeaders = notEmpty(c.AllowedMethods), notEmpty(c.AllowedHeaders)
	c.ExposedHeaders = notEmpty(c.ExposedHeaders)
	for i, method := range c.AllowedMethods {
		c.AllowedMethods[i] = strings.ToUpper(method)
		if !slices.Contains(corsMethods, c.AllowedMethods[i]) {
			report("allowed_methods", "Invalid allowed methods: '%s' is none of %s", method, strings.Join(corsMethods, ", "))
		}
	}
	for key, headers := range map[string][]string{"allowed_headers": c.AllowedHeaders, "exposed_headers": c.ExposedHeaders} {
		for _, header := range headers {
			if header != "*" && !httpguts.ValidHeaderFieldName(header) {
				report(key, "Invalid %s: '%s' is not the name of a header", strings.ReplaceAll(key, "_", " "), header)
			}
		}
	}
	if c.Enabled && c.AllowCredentials && slices.Contains(c.AllowedOrigins, "*") {
		report("allow_credentials", "cannot be combined with the origin *; list the origins in allowed_origins")
	}
}

// Metrics is the section [http.metrics].
type Metrics struct {
	Enabled  bool   `key:"enabled" default:"false" doc:"Whether metrics are served."`
	Endpoint string `key:"endpoint" default:"/metrics" doc:"The path, beginning with a slash."`
}

func (m *Metrics) check(report reporter) {
	if !strings.HasPrefix(m.Endpoint, "/") {
		report("endpoint", "Invalid endpoint: '%s' does not begin with a slash", m.Endpoint)
	}
}

// HTTPTLS is the section [http.tls].
type HTTPTLS struct {
	Enabled  bool   `key:"enabled" default:"false" doc:"Whether the API speaks HTTPS."`
	CertFile string `key:"cert_file" default:"core/certs/iggy_cert.pem" doc:"The certificate chain, PEM."`
	KeyFile  string `key:"key_file" default:"core/certs/iggy_key.pem" doc:"The private key, PEM."`
}

// Iggy is the section [iggy].
type Iggy struct {
	Address   string        `key:"address" default:"localhost:8090" doc:"The TCP address of the server, as host:port."`
	Username  string        `key:"username" default:"iggy" doc:"The user, where there is no token."`
	Password  Secret        `key:"password,secret" default:"iggy" doc:"The password of the user."`
	Token     Secret        `key:"token,secret" default:"" doc:"A personal access token, which wins over user and password; file:PATH reads it from a file."`
	TLS       IggyTLS       `key:"tls" doc:"Encryption of the connection."`
	Dial      time.Duration `key:"dial_timeout,new" default:"5s" doc:"How long a connection attempt may take."`
	Call      time.Duration `key:"call_timeout,new" default:"30s" doc:"How long the server may take for an answer before the connection counts as lost."`
	Heartbeat time.Duration `key:"heartbeat_interval,new" default:"5s" doc:"How often an idle connection is checked. 0: never."`
}

func (i *Iggy) check(report reporter) {
	if _, _, err := splitAddress(i.Address); err != nil {
		report("address", "Invalid address: '%s' %v", withoutCredentials(i.Address), err)
	}
	if i.Token == "" && (i.Username == "" || i.Password == "") {
		report("token", "Missing Iggy credentials: give username and password, or token")
	}
	for key, timeout := range map[string]time.Duration{"dial_timeout": i.Dial, "call_timeout": i.Call} {
		if timeout <= 0 {
			report(key, "must be longer than 0")
		}
	}
}

// IggyTLS is the section [iggy.tls].
type IggyTLS struct {
	Enabled bool   `key:"enabled" default:"false" doc:"Whether the connection uses TLS."`
	CAFile  string `key:"ca_file" default:"core/certs/iggy_ca_cert.pem" doc:"The certificates to trust, PEM."`
	Domain  string `key:"domain" default:"" doc:"The name that the server's certificate must carry. Empty: the host of the address."`
}

func (t *IggyTLS) check(report reporter) {
	if t.Enabled && t.CAFile == "" {
		report("ca_file", "Missing TLS certificate file")
	}
}

// splitAddress checks host:port. The host may be empty, a name or an IP address.
func splitAddress(address string) (host string, port uint16, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("is not host:port, such as localhost:8090 or [::1]:8090")
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("has no port between 0 and 65535")
	}
	return host, uint16(n), nil
}

// State is the section [state].
type State struct {
	Path string `key:"path" default:"local_state" doc:"The directory, which is created with its parents."`
}

func (s *State) check(report reporter) {
	if s.Path == "" {
		report("path", "is empty; name a directory")
	}
}

// ProviderType is where connector configurations live.
type ProviderType string

const (
	ProviderLocal ProviderType = "local"
	ProviderHTTP  ProviderType = "http"
)

// Connectors is the section [connectors].
type Connectors struct {
	Type            ProviderType      `key:"config_type" default:"local" enum:"local|http" doc:"Files of a directory (local) or a service (http)."`
	Dir             string            `key:"config_dir" default:"" doc:"local: the directory with one file a connector. Empty: no connectors."`
	BaseURL         string            `key:"base_url" default:"" doc:"http: the URL that all paths are appended to. Required there."`
	Timeout         time.Duration     `key:"timeout" default:"10s" doc:"http: how long one attempt of a request may take."`
	RefreshInterval time.Duration     `key:"refresh_interval,new" default:"0" doc:"How often the active configurations are asked for again, and connectors started, restarted or stopped to match; while they cannot be read nothing changes. 0: never."`
	RequestHeaders  map[string]Secret `key:"request_headers,secret,noenv" doc:"http: headers of every request."`
	URLTemplates    map[string]string `key:"url_templates,noenv" doc:"http: paths of single operations, with {key} and {version}."`
	Response        Response          `key:"response" doc:"http: where the data lies in an answer."`
	Retry           HTTPRetry         `key:"retry" doc:"http: how failed requests are repeated."`
}

func (c *Connectors) check(report reporter) {
	if c.Type != ProviderHTTP {
		return
	}
	if c.BaseURL == "" {
		report("base_url", "missing, but required with config_type = \"http\"")
	}
	if c.Timeout <= 0 {
		report("timeout", "must be longer than 0")
	}
	for name, value := range c.RequestHeaders {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(string(value)) {
			report("request_headers", "Invalid request headers: '%s' is not a valid header", name)
		}
	}
}

// Response is the section [connectors.response].
type Response struct {
	DataPath  string `key:"data_path" default:"" doc:"Dotted path of the data. Empty: the whole answer."`
	ErrorPath string `key:"error_path" default:"" doc:"Dotted path of an error. Anything there but null makes the answer an error."`
}

// HTTPRetry is the section [connectors.retry].
type HTTPRetry struct {
	Enabled           bool          `key:"enabled" default:"true" doc:"Whether failed requests are repeated."`
	MaxAttempts       uint32        `key:"max_attempts" default:"3" doc:"How often a request is repeated after the first attempt."`
	InitialBackoff    time.Duration `key:"initial_backoff" default:"1s" doc:"The longest wait before the first repetition."`
	MaxBackoff        time.Duration `key:"max_backoff" default:"30s" doc:"The longest wait of all."`
	BackoffMultiplier uint32        `key:"backoff_multiplier" default:"2" min:"1" doc:"By what the wait grows each time."`
}

func (r *HTTPRetry) check(report reporter) {
	checkBackoff(r.InitialBackoff, r.MaxBackoff, report)
}

func checkBackoff(initial, longest time.Duration, report reporter) {
	if initial > longest {
		report("initial_backoff", "Invalid initial backoff: %v is longer than max_backoff, %v", initial, longest)
	}
}

// Supervisor is the section [supervisor].
type Supervisor struct {
	Enabled        bool          `key:"enabled,new" default:"true" doc:"Whether connectors that ended are started again."`
	InitialBackoff time.Duration `key:"initial_backoff,new" default:"1s" doc:"The wait before the first attempt, about. It doubles with each one."`
	MaxBackoff     time.Duration `key:"max_backoff,new" default:"60s" doc:"The longest wait, about."`
}

func (s *Supervisor) check(report reporter) {
	checkBackoff(s.InitialBackoff, s.MaxBackoff, report)
}

// Plugins is the section [plugins].
type Plugins struct {
	StuckCallAfter time.Duration `key:"stuck_call_after,new" default:"30s" doc:"After how long a plugin call that has not returned makes its connector's status error."`
}

// Shutdown is the section [shutdown].
type Shutdown struct {
	Timeout time.Duration `key:"timeout,new" default:"30s" doc:"After how long the process ends although connectors are still closing."`
}

// Telemetry is the section [telemetry].
type Telemetry struct {
	Enabled     bool     `key:"enabled" default:"false" doc:"Whether logs and traces are exported."`
	ServiceName string   `key:"service_name" default:"iggy-connectors" doc:"The resource attribute service.name."`
	Logs        Exporter `key:"logs" doc:"Where logs go."`
	Traces      Exporter `key:"traces" doc:"Where traces go."`
}

// Exporter is the section [telemetry.logs] or [telemetry.traces].
type Exporter struct {
	Transport Transport `key:"transport" default:"grpc" enum:"grpc|http" doc:"The form of OTLP."`
	Endpoint  string    `key:"endpoint" default:"http://localhost:4317" doc:"The URL of the collector. For http it is used as it is."`
}

// Transport is a form of OTLP.
type Transport string

const (
	TransportGRPC Transport = "grpc"
	TransportHTTP Transport = "http"
)

// Logging is the section [logging].
type Logging struct {
	Format LogFormat `key:"format" default:"text" enum:"text|json" doc:"The form of the lines."`
}

// LogFormat is the form of the log's lines.
type LogFormat string

const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)
