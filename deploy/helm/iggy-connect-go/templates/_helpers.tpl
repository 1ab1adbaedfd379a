{{- /*
Licensed to the Apache Software Foundation (ASF) under one or more contributor
license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
SPDX-License-Identifier: Apache-2.0
*/}}

{{- define "name" -}}
{{- $name := .Release.Name }}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end }}
{{- $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "iggySecret" -}}
{{ .Values.iggy.existingSecret | default (printf "%s-iggy" (include "name" .)) }}
{{- end }}

{{- define "apiSecret" -}}
{{ .Values.api.existingSecret | default (printf "%s-api" (include "name" .)) }}
{{- end }}

{{- /* The pod of one role: dict "top" $ "role" "sources" or "sinks" "values" the values of that role. */}}
{{- define "pod" }}
{{- $top := .top }}
metadata:
  labels:
    {{- include "labels" $top | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  annotations:
    # Another configuration is another pod.
    checksum/connectors: {{ .values.connectors | toJson | sha256sum }}
    checksum/env: {{ $top.Values.env | toJson | sha256sum }}
    checksum/secrets: {{ list $top.Values.iggy $top.Values.api | toJson | sha256sum }}
    {{- with .values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ $top.Values.terminationGracePeriodSeconds }}
  {{- with $top.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: iggy-connect-go
      image: {{ printf "%s:%s" $top.Values.image.repository ($top.Values.image.tag | default $top.Chart.AppVersion) }}
      imagePullPolicy: {{ $top.Values.image.pullPolicy }}
      ports:
        - {name: http, containerPort: 8081}
      env:
        - name: IGGY_CONNECTORS_IGGY_ADDRESS
          value: {{ $top.Values.iggy.address | quote }}
        - name: IGGY_CONNECTORS_IGGY_USERNAME
          valueFrom: {secretKeyRef: {name: {{ include "iggySecret" $top }}, key: username}}
        - name: IGGY_CONNECTORS_IGGY_PASSWORD
          valueFrom: {secretKeyRef: {name: {{ include "iggySecret" $top }}, key: password}}
        - name: IGGY_CONNECTORS_HTTP_API_KEY
          valueFrom: {secretKeyRef: {name: {{ include "apiSecret" $top }}, key: api-key}}
        {{- range $name, $value := $top.Values.env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      livenessProbe:
        httpGet: {path: /health/live, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /health/ready, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: connectors, mountPath: /etc/iggy-connect-go/connectors, readOnly: true}
        - {name: state, mountPath: /var/lib/iggy-connect-go}
        - {name: tmp, mountPath: /tmp}
        {{- if $top.Values.connectorSecret }}
        - {name: secrets, mountPath: /etc/iggy-connect-go/secrets, readOnly: true}
        {{- end }}
  volumes:
    - name: connectors
      configMap: {name: {{ include "name" $top }}-{{ .role }}}
    - name: tmp
      emptyDir: {}
    {{- if eq .role "sinks" }}
    - name: state
      emptyDir: {}
    {{- end }}
    {{- with $top.Values.connectorSecret }}
    - name: secrets
      secret: {secretName: {{ . }}}
    {{- end }}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
