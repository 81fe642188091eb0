// Sets a pod's defaults. Some depend on other fields: requests default to limits, the pull policy depends on the
// image tag, and host ports default to container ports on the host network.
import type { Container, EphemeralContainer } from './container-schema.ts'
import type { Pod, PodSpec, PodStatus } from './pod-schema.ts'
import { setVolumeDefaults } from './pod-volume-defaults.ts'
import { defaultPullPolicy } from './pull-policy.ts'

export function setPodDefaults(pod: Pod): void {
  pod.spec ??= { containers: [] }
  setPodSpecDefaults(pod.spec)
  if (pod.status) syncPodIPs(pod.status)
}

/** Sets the defaults of a spec, of a pod or in a template. */
export function setPodSpecDefaults(spec: PodSpec): void {
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume)
  for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) {
    setContainerDefaults(container)
    setRequestDefaults(container)
    if (spec.hostNetwork) for (const port of container.ports ?? []) port.hostPort ??= port.containerPort
  }
  for (const container of spec.ephemeralContainers ?? []) setContainerDefaults(container)

  const serviceAccountName = spec.serviceAccountName ?? spec.serviceAccount // serviceAccount is the deprecated name of the field
  if (serviceAccountName !== undefined) {
    spec.serviceAccountName = serviceAccountName
    spec.serviceAccount = serviceAccountName
  }
  spec.restartPolicy ??= 'Always'
  spec.terminationGracePeriodSeconds ??= 30
  if (spec.terminationGracePeriodSeconds < 0) spec.terminationGracePeriodSeconds = 1
  spec.dnsPolicy ??= 'ClusterFirst'
  spec.securityContext ??= {}
  spec.schedulerName ??= 'default-scheduler'
  spec.enableServiceLinks ??= true
}

function setContainerDefaults(container: Container | EphemeralContainer): void {
  container.terminationMessagePath ??= '/dev/termination-log'
  container.terminationMessagePolicy ??= 'File'
  container.imagePullPolicy ??= defaultPullPolicy(container.image ?? '')
  for (const port of container.ports ?? []) port.protocol ??= 'TCP'
  for (const variable of container.env ?? []) {
    if (variable.valueFrom?.fieldRef) variable.valueFrom.fieldRef.apiVersion ??= 'v1'
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (!probe) continue
    probe.timeoutSeconds ??= 1
    probe.periodSeconds ??= 10
    probe.successThreshold ??= 1
    probe.failureThreshold ??= 3
    setHandlerDefaults(probe)
    if (probe.grpc) probe.grpc.service ??= ''
  }
  setHandlerDefaults(container.lifecycle?.postStart)
  setHandlerDefaults(container.lifecycle?.preStop)
}

function setHandlerDefaults(handler: { httpGet?: { path?: string; scheme?: string } } | undefined): void {
  if (!handler?.httpGet) return
  handler.httpGet.path ??= '/'
  handler.httpGet.scheme ??= 'HTTP'
}

function setRequestDefaults(container: Container): void {
  const { resources } = container
  if (resources?.limits) resources.requests = { ...resources.limits, ...resources.requests }
}

/** Sets podIP, the older form of podIPs[0], and podIPs to the same value. If they differ, podIP is used. */
function syncPodIPs(status: PodStatus): void {
  if (status.podIP && status.podIPs?.[0]?.ip !== status.podIP) status.podIPs = [{ ip: status.podIP }]
  else if (!status.podIP && status.podIPs?.[0]) status.podIP = status.podIPs[0].ip
}
