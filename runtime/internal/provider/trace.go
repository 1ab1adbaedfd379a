// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced makes a span for each attempt of a request and tells the service of it. The span
// shows neither the query nor the headers, which may hold secrets.
type traced struct {
	*http.Transport
	tracer trace.Tracer
}

func (t traced) RoundTrip(request *http.Request) (*http.Response, error) {
	operation := request.Context().Value(attemptKey{}).(*attempt).operation
	ctx, span := t.tracer.Start(request.Context(), operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", request.Method), attribute.String("url.full", redacted(request.URL.String()))))
	defer span.End()
	request = request.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(request.Header))
	response, err := t.Transport.RoundTrip(request)
	switch {
	case err != nil:
		span.SetStatus(codes.Error, withoutURL(err).Error())
	case response.StatusCode >= http.StatusBadRequest:
		span.SetStatus(codes.Error, response.Status)
	}
	if response != nil {
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	}
	return response, err
}
