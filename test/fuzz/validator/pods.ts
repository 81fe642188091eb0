// Pod: names, containers, volumes and their mounts; the few mutable fields.
import { checkClaimSpec } from './claims.ts'
import { repeated, type Say, same, show } from './findings.ts'
import { goesUp, isDnsLabel, isDnsSubdomain, isDriverName, isLabelValue, isPortName, isQualifiedName } from './names.ts'
import { compare, isNegative, isWhole } from './quantity.ts'
import { checkNodeSelector, checkNodeTerm } from './selectors.ts'

const INT32_MAX = 2 ** 31 - 1

export function checkPod({ metadata, spec = {}, status = {} }: any, say: Say, old?: any): void {
  const containers: any[] = spec.containers ?? []
  const initContainers: any[] = spec.initContainers ?? []
  if (containers.length === 0) say('spec.containers', 'missing')
  checkVolumes(metadata.name, spec.volumes ?? [], say)
  const names = [...containers, ...initContainers, ...(spec.ephemeralContainers ?? [])].map(({ name }) => name)
  if (repeated(names).length > 0) say('spec.containers', 'a name twice')
  for (const [field, list] of Object.entries({ containers, initContainers })) {
    for (const [i, container] of list.entries()) checkContainer(container, spec, `spec.${field}[${i}]`, say)
  }
  checkHostPorts(containers, say)
  checkPodFields(spec, say)
  checkTolerations(spec.tolerations ?? [], say)
  checkAffinity(spec.affinity?.nodeAffinity, say)
  if (!old && status.phase !== 'Pending') say('status.phase', `a new pod begins Pending, not ${show(status.phase)}`)
  if (old) checkPodChange(spec, old.spec, say)
}

function checkPodFields(spec: any, say: Say): void {
  const oneOf = (field: string, allowed: readonly string[]) => {
    if (!allowed.includes(spec[field])) say(`spec.${field}`, `${show(spec[field])} is none of ${allowed}`)
  }
  oneOf('restartPolicy', ['Always', 'OnFailure', 'Never'])
  oneOf('dnsPolicy', ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'])
  if (!(spec.terminationGracePeriodSeconds >= 0)) say('spec.terminationGracePeriodSeconds', 'missing or negative')
  if (!spec.schedulerName) say('spec.schedulerName', 'the default is missing')
  if (!spec.securityContext) say('spec.securityContext', 'the default is missing')
  const deadline = spec.activeDeadlineSeconds
  if (deadline !== undefined && (deadline < 1 || deadline > INT32_MAX))
    say('spec.activeDeadlineSeconds', 'out of range')
  for (const field of ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName']) {
    if (spec[field] && !isDnsSubdomain(spec[field])) say(`spec.${field}`, `${show(spec[field])} is no name`)
  }
  if ((spec.serviceAccount ?? '') !== (spec.serviceAccountName ?? '')) say('spec.serviceAccount', 'differs')
  for (const field of ['hostname', 'subdomain']) {
    if (spec[field] && !isDnsLabel(spec[field])) say(`spec.${field}`, `${show(spec[field])} is no name`)
  }
  for (const [key, value] of Object.entries<string>(spec.nodeSelector ?? {})) {
    if (!isQualifiedName(key) || !isLabelValue(value)) say('spec.nodeSelector', `${show({ [key]: value })} is no label`)
  }
  const gates: any[] = spec.schedulingGates ?? []
  for (const { name } of gates) if (!isQualifiedName(name)) say('spec.schedulingGates', `${show(name)} is no name`)
  if (repeated(gates.map(({ name }) => name)).length > 0) say('spec.schedulingGates', 'a gate twice')
  if (gates.length > 0 && spec.nodeName) say('spec.nodeName', 'a gated pod has no node')
}

function checkContainer(container: any, spec: any, path: string, say: Say): void {
  if (!isDnsLabel(container.name ?? '')) say(`${path}.name`, `${show(container.name)} is no name`)
  if (!container.image) say(`${path}.image`, 'missing')
  if (!['Always', 'IfNotPresent', 'Never'].includes(container.imagePullPolicy))
    say(`${path}.imagePullPolicy`, 'is none')
  if (!['File', 'FallbackToLogsOnError'].includes(container.terminationMessagePolicy)) {
    say(`${path}.terminationMessagePolicy`, 'is none')
  }
  if (!container.terminationMessagePath) say(`${path}.terminationMessagePath`, 'the default is missing')
  const ports: any[] = container.ports ?? []
  for (const [i, port] of ports.entries()) {
    const at = `${path}.ports[${i}]`
    if (port.name && !isPortName(port.name)) say(`${at}.name`, `${show(port.name)} is no port's name`)
    if (!isPort(port.containerPort)) say(`${at}.containerPort`, 'is no port')
    if (port.hostPort && !isPort(port.hostPort)) say(`${at}.hostPort`, 'is no port')
    if (!['TCP', 'UDP', 'SCTP'].includes(port.protocol)) say(`${at}.protocol`, `${show(port.protocol)} is no protocol`)
  }
  if (repeated(ports.map(({ name }) => name).filter(Boolean)).length > 0) say(`${path}.ports`, 'a name twice')
  for (const { name } of container.env ?? [])
    if (!name || /=/.test(name)) say(`${path}.env`, `${show(name)} is no variable`)
  checkMounts(container, spec, path, say)
  checkResources(container.resources ?? {}, `${path}.resources`, say)
}

const isPort = (port: unknown): boolean => Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65535

function checkMounts(container: any, spec: any, path: string, say: Say): void {
  const mounts: any[] = container.volumeMounts ?? []
  const devices: any[] = container.volumeDevices ?? []
  const volumes = new Map<string, any>((spec.volumes ?? []).map((volume: any) => [volume.name, volume]))
  for (const [i, mount] of mounts.entries()) {
    if (!volumes.has(mount.name)) say(`${path}.volumeMounts[${i}].name`, `${show(mount.name)} is no volume of the pod`)
    if (!mount.mountPath) say(`${path}.volumeMounts[${i}].mountPath`, 'missing')
    for (const field of ['subPath', 'subPathExpr']) {
      if (mount[field]?.startsWith('/') || goesUp(mount[field] ?? ''))
        say(`${path}.volumeMounts[${i}].${field}`, 'leaves the volume')
    }
    if (mount.subPath && mount.subPathExpr) say(`${path}.volumeMounts[${i}]`, 'subPath and subPathExpr')
  }
  for (const [i, device] of devices.entries()) {
    const volume = volumes.get(device.name)
    if (!volume?.persistentVolumeClaim && !volume?.ephemeral)
      say(`${path}.volumeDevices[${i}].name`, 'is no claim of the pod')
    if (!device.devicePath || goesUp(device.devicePath))
      say(`${path}.volumeDevices[${i}].devicePath`, 'missing or leaves')
  }
  const places = [...mounts.map(({ mountPath }) => mountPath), ...devices.map(({ devicePath }) => devicePath)]
  if (repeated(places).length > 0) say(`${path}.volumeMounts`, 'a place twice')
}

function checkResources({ requests = {}, limits = {} }: any, path: string, say: Say): void {
  for (const [where, amounts] of Object.entries<Record<string, string>>({ requests, limits })) {
    for (const [name, amount] of Object.entries(amounts)) {
      const at = `${path}.${where}[${name}]`
      if (!isQualifiedName(name)) say(at, 'is no resource')
      const known = ['cpu', 'memory', 'ephemeral-storage'].includes(name) || name.startsWith('hugepages-')
      if (!name.includes('/') && !known) say(at, 'is not for containers')
      if (isNegative(amount)) say(at, 'negative')
      if (name.includes('/') && !name.includes('kubernetes.io/') && !isWhole(amount)) say(at, 'is no whole number')
    }
  }
  for (const [name, request] of Object.entries<string>(requests)) {
    const shared = (!name.includes('/') || name.includes('kubernetes.io/')) && !name.startsWith('hugepages-')
    if (!shared && (limits[name] === undefined || compare(request, limits[name]) !== 0)) {
      say(`${path}.requests[${name}]`, 'must equal its limit')
    }
  }
  for (const [name, limit] of Object.entries<string>(limits)) {
    if (requests[name] !== undefined && compare(requests[name], limit) > 0)
      say(`${path}.requests[${name}]`, 'above its limit')
  }
}

function checkHostPorts(containers: readonly any[], say: Say): void {
  const taken = containers
    .flatMap(({ ports = [] }) => ports)
    .filter(({ hostPort }: any) => hostPort)
    .map(({ protocol, hostIP = '', hostPort }: any) => `${protocol} ${hostIP} ${hostPort}`)
  if (repeated(taken).length > 0) say('spec.containers', 'a host port twice')
}

function checkVolumes(podName: string, volumes: readonly any[], say: Say): void {
  if (repeated(volumes.map(({ name }) => name)).length > 0) say('spec.volumes', 'a name twice')
  const made = volumes.filter(({ ephemeral }) => ephemeral).map(({ name }) => `${podName}-${name}`)
  for (const [i, volume] of volumes.entries()) {
    const at = `spec.volumes[${i}]`
    const { name, ...sources } = volume
    if (!isDnsLabel(name)) say(`${at}.name`, `${show(name)} is no name`)
    const given = Object.keys(sources)
    if (given.length !== 1) say(at, `one source is wanted, not ${show(given)}`)
    const { persistentVolumeClaim: claim, emptyDir, hostPath, csi, ephemeral, secret, configMap } = sources
    if (claim && !claim.claimName) say(`${at}.persistentVolumeClaim.claimName`, 'missing')
    if (claim && made.includes(claim.claimName)) say(at, 'the claim belongs to an ephemeral volume')
    if (isNegative(emptyDir?.sizeLimit)) say(`${at}.emptyDir.sizeLimit`, 'negative')
    if (hostPath && (!hostPath.path || goesUp(hostPath.path))) say(`${at}.hostPath.path`, 'is no path')
    if (csi && !isDriverName(csi.driver ?? '')) say(`${at}.csi.driver`, `${show(csi.driver)} is no driver`)
    if (secret && !secret.secretName) say(`${at}.secret.secretName`, 'missing')
    if (configMap && !configMap.name) say(`${at}.configMap.name`, 'missing')
    for (const source of [secret, configMap]) {
      if (source?.defaultMode < 0 || source?.defaultMode > 0o777) say(`${at}.defaultMode`, 'out of range')
    }
    if (ephemeral) {
      if (!ephemeral.volumeClaimTemplate) say(`${at}.ephemeral.volumeClaimTemplate`, 'missing')
      else checkClaimSpec(ephemeral.volumeClaimTemplate.spec ?? {}, `${at}.ephemeral.volumeClaimTemplate.spec`, say)
    }
  }
}

function checkTolerations(tolerations: readonly any[], say: Say): void {
  for (const [
    i,
    { key = '', operator = 'Equal', value = '', effect = '', tolerationSeconds },
  ] of tolerations.entries()) {
    const at = `spec.tolerations[${i}]`
    if (key && !isQualifiedName(key)) say(`${at}.key`, `${show(key)} is no label key`)
    if (!key && operator !== 'Exists') say(`${at}.operator`, 'without a key only Exists makes sense')
    if (!['', 'Equal', 'Exists', 'Lt', 'Gt'].includes(operator))
      say(`${at}.operator`, `${show(operator)} is no operator`)
    if (operator === 'Exists' && value) say(`${at}.value`, 'not wanted')
    if (operator !== 'Exists' && !isLabelValue(value)) say(`${at}.value`, `${show(value)} is no label value`)
    if (!['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect)) say(`${at}.effect`, 'is no effect')
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') say(`${at}.tolerationSeconds`, 'is for NoExecute')
  }
}

function checkAffinity(affinity: any, say: Say): void {
  const path = 'spec.affinity.nodeAffinity'
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (required) checkNodeSelector(required, `${path}.required`, say)
  for (const { weight, preference = {} } of affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
    if (!(weight >= 1 && weight <= 100)) say(`${path}.preferred`, `${show(weight)} is no weight`)
    checkNodeTerm(preference, `${path}.preferred`, say)
  }
}

/** Mutable: images, a shorter deadline, more tolerations, fewer gates, and the node once. */
function checkPodChange(spec: any, old: any, say: Say): void {
  const gated = old.schedulingGates?.length > 0
  const fixedPart = ({ activeDeadlineSeconds, tolerations, schedulingGates, nodeName, ...rest }: any) => {
    const { nodeSelector, affinity, containers, initContainers, ephemeralContainers, ...fixed } = rest
    const withoutImages = (list: any[] = []) => list.map(({ image, ...container }) => container)
    return {
      ...fixed,
      containers: withoutImages(containers),
      initContainers: withoutImages(initContainers),
      ...(gated ? {} : { nodeSelector, affinity }), // a gated pod may still be narrowed down
    }
  }
  if (!same(fixedPart(spec), fixedPart(old))) say('spec', 'more than the few fields changed')
  if (old.nodeName && spec.nodeName !== old.nodeName) say('spec.nodeName', 'a pod stays on its node')
  const [now, before] = [spec.activeDeadlineSeconds, old.activeDeadlineSeconds]
  if (before !== undefined && !(now <= before)) say('spec.activeDeadlineSeconds', 'may only become less')
  for (const toleration of old.tolerations ?? []) {
    const match = ({ tolerationSeconds: _, ...rest }: any) => rest
    if (!(spec.tolerations ?? []).some((kept: any) => same(match(kept), match(toleration))))
      say('spec.tolerations', 'one is gone')
  }
  const gates = new Set((old.schedulingGates ?? []).map(({ name }: any) => name))
  for (const { name } of spec.schedulingGates ?? [])
    if (!gates.has(name)) say('spec.schedulingGates', `${show(name)} is new`)
}
