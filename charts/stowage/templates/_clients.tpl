{{/* The Deployment of a process that uses the Stowage API: controllers or scheduler. Argument: {root, component, values}. */}}
{{- define "stowage.clientDeployment" -}}
{{- $fullname := include "stowage.fullname" .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "stowage.componentMetadata" . | nindent 2 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels:
      {{- include "stowage.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      {{- include "stowage.podMetadata" . | nindent 6 }}
    spec:
      {{- include "stowage.podSpec" . | nindent 6 }}
      {{- include "stowage.topologySpreadConstraints" . | nindent 6 }}
      securityContext:
        {{- toYaml .root.Values.podSecurityContext | nindent 8 }}
      containers:
        - name: {{ .component }}
          {{- include "stowage.container" .root | nindent 10 }}
          args:
            - {{ .component }}
            - --kubeconfig=/etc/stowage/client/kubeconfig
            - --http-endpoint=:{{ .root.Values.metricsPort }}
            - --log-level={{ .root.Values.logLevel }}
            - --log-format=json
            {{- range .values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          ports:
            - {name: metrics, containerPort: {{ .root.Values.metricsPort }}}
          {{- include "stowage.probes" .root | nindent 10 }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - {name: client, mountPath: /etc/stowage/client, readOnly: true}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - name: client
          projected:
            defaultMode: 0440
            sources:
              - configMap: {name: {{ $fullname }}-kubeconfig}
              - secret: {name: {{ .root.Values.pki.secretName }}, items: [{key: ca.crt, path: ca.crt}]}
              - secret: {name: {{ default (printf "%s-%s" $fullname .component) .values.tokenSecretName }}, items: [{key: token, path: token}]}
        - name: tmp
          emptyDir: {}
{{- end -}}
