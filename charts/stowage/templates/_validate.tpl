{{/* Fails with a message if values contradict each other. values.schema.json checks the values one by one. */}}
{{- define "stowage.validate" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- include "stowage.validateSidecar" . -}}
{{- else if eq .Values.mode "replicated" -}}
{{- include "stowage.validateReplicated" . -}}
{{- else -}}
{{- include "stowage.validateSingle" . -}}
{{- end -}}
{{- end -}}

{{- define "stowage.validateSidecar" -}}
{{- $sidecar := .Values.sidecar -}}
{{- if not $sidecar.driverName -}}
{{- fail "sidecar.driverName is empty: set it to the name of the CSI driver, such as hostpath.csi.k8s.io" -}}
{{- end -}}
{{- if $sidecar.enabled -}}
{{- if not $sidecar.socketPath -}}
{{- fail "sidecar.socketPath is empty: set it to the path of the driver's socket, such as /csi/csi.sock; or set sidecar.enabled=false to create only the roles" -}}
{{- end -}}
{{- if and (not $sidecar.driverContainers) (not $sidecar.socketVolume) -}}
{{- fail "sidecar has no driver: set sidecar.driverContainers to the containers of the driver's controller, or sidecar.socketVolume to the volume with its socket" -}}
{{- end -}}
{{- end -}}
{{- if and $sidecar.nodeDeployment $sidecar.leaderElection -}}
{{- fail "sidecar.nodeDeployment and sidecar.leaderElection exclude each other: every node must work; set sidecar.leaderElection=false" -}}
{{- end -}}
{{- if and (not $sidecar.nodeDeployment) (not $sidecar.leaderElection) (gt (int $sidecar.replicas) 1) -}}
{{- fail "sidecar.replicas is above 1 without sidecar.leaderElection: all of them would work at the same time" -}}
{{- end -}}
{{- if and $sidecar.holdUpstreamLeases (not $sidecar.leaderElection) -}}
{{- fail "sidecar.holdUpstreamLeases requires sidecar.leaderElection" -}}
{{- end -}}
{{- if .Values.rbac.create -}}
{{- if and $sidecar.leaderElection (not (has "leader-election" .Values.rbac.features)) -}}
{{- fail "sidecar.leaderElection requires the feature leader-election in rbac.features" -}}
{{- end -}}
{{- if and $sidecar.capacity (not (has "capacity" .Values.rbac.features)) -}}
{{- fail "sidecar.capacity requires the feature capacity in rbac.features" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "stowage.validateReplicated" -}}
{{- if not .Values.etcd.endpoints -}}
{{- fail "etcd.endpoints is empty: mode=replicated needs etcd, such as {etcd-0.etcd:2379,etcd-1.etcd:2379,etcd-2.etcd:2379}" -}}
{{- end -}}
{{- if not .Values.pki.secretName -}}
{{- fail "pki.secretName is empty: the servers of mode=replicated share their credentials; create a Secret from the pki directory of a server" -}}
{{- end -}}
{{- end -}}

{{- define "stowage.validateSingle" -}}
{{- $persistence := .Values.single.persistence -}}
{{- if and (eq $persistence.type "hostPath") (not $persistence.hostPath) -}}
{{- fail "single.persistence.hostPath is empty: set it to a directory of the machine, or choose another single.persistence.type" -}}
{{- end -}}
{{- if and (eq $persistence.type "existingClaim") (not $persistence.existingClaim) -}}
{{- fail "single.persistence.existingClaim is empty: set it to the name of a claim, or choose another single.persistence.type" -}}
{{- end -}}
{{- end -}}
