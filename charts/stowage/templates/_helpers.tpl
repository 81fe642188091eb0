{{- define "stowage.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of all objects, with room for the suffix of a component. */}}
{{- define "stowage.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "stowage.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "stowage.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stowage.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "stowage.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "stowage.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "stowage.labels" -}}
app.kubernetes.io/name: {{ include "stowage.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Selector of the pods of a component. Argument: {root, component}. */}}
{{- define "stowage.selectorLabels" -}}
app.kubernetes.io/name: {{ include "stowage.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Metadata of an object of a component. Argument: {root, component}. */}}
{{- define "stowage.componentMetadata" -}}
name: {{ include "stowage.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "stowage.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Metadata of the pods of a component. Argument: {root, component}. */}}
{{- define "stowage.podMetadata" -}}
labels:
  {{- include "stowage.selectorLabels" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The part of a pod's spec that all components share. Argument: {root, component}. */}}
{{- define "stowage.podSpec" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ include "stowage.serviceAccountName" .root }}
automountServiceAccountToken: {{ eq .component "sidecar" }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Constraints that spread the pods of a Deployment. Argument: {root, component}. */}}
{{- define "stowage.topologySpreadConstraints" -}}
topologySpreadConstraints:
{{- with .root.Values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "stowage.selectorLabels" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}

{{/* Image and security context of a container of Stowage. */}}
{{- define "stowage.container" -}}
image: {{ include "stowage.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end -}}

{{/* Probes of a component that serves health on the metrics port. */}}
{{- define "stowage.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz/leader-election, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
{{- end -}}

{{/* Probes of a server. Readiness covers the store: a server without etcd gets no requests, and is not restarted. */}}
{{- define "stowage.serverProbes" -}}
startupProbe:
  httpGet: {path: /livez, port: api, scheme: HTTPS}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /livez, port: api, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: api, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{/* Host names of the Service, for the serving certificate. */}}
{{- define "stowage.tlsSans" -}}
{{- $name := include "stowage.fullname" . -}}
{{- $namespace := .Release.Namespace -}}
{{- $names := list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) -}}
{{- concat $names .Values.server.tlsSans | join "," -}}
{{- end -}}

{{/* Whether the mode has API servers: "true" or "". */}}
{{- define "stowage.hasServers" -}}
{{- if ne .Values.mode "sidecar" }}true{{ end -}}
{{- end -}}

{{/* The components that have pods, separated by spaces. */}}
{{- define "stowage.components" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- if .Values.sidecar.enabled }}sidecar{{ end -}}
{{- else if eq .Values.mode "single" -}}
server
{{- else -}}
server controllers{{ if .Values.scheduler.enabled }} scheduler{{ end }}
{{- end -}}
{{- end -}}
