// Checks Pods.
import { checkClaimSpec } from './claims.ts'
import { duplicatesIn, format, isEqualJson, type Report } from './findings.ts'
import {
  hasParentSegment,
  isDnsLabel,
  isDnsSubdomain,
  isDriverName,
  isLabelValue,
  isPortName,
  isQualifiedName,
} from './names.ts'
import { compare, isNegative, isWhole } from './quantity.ts'
import { checkNodeSelector, checkNodeTerm } from './selectors.ts'

const INT32_MAX = 2 ** 31 - 1

export function checkPod({ metadata, spec = {}, status = {} }: any, report: Report, old?: any): void {
  checkPodSpec(spec, report, metadata.name)
  if (!old && status.phase !== 'Pending')
    report('status.phase', `a new pod must be Pending, not ${format(status.phase)}`)
  if (old) checkPodChange(spec, old.spec, report)
}

/** Checks the spec of a pod or, without a name, of a pod template. */
export function checkPodSpec(spec: any, report: Report, podName?: string): void {
  const containers: any[] = spec.containers ?? []
  const initContainers: any[] = spec.initContainers ?? []
  if (containers.length === 0) report('spec.containers', 'missing')
  checkVolumes(podName, spec.volumes ?? [], report)
  const names = [...containers, ...initContainers, ...(spec.ephemeralContainers ?? [])].map(({ name }) => name)
  if (duplicatesIn(names).length > 0) report('spec.containers', 'duplicate name')
  for (const [field, list] of Object.entries({ containers, initContainers })) {
    for (const [i, container] of list.entries()) checkContainer(container, spec, `spec.${field}[${i}]`, report)
  }
  checkHostPorts(containers, report)
  checkPodFields(spec, report)
  checkTolerations(spec.tolerations ?? [], report)
  checkAffinity(spec.affinity?.nodeAffinity, report)
}

function checkPodFields(spec: any, report: Report): void {
  const checkChoice = (field: string, allowedValues: readonly string[]) => {
    if (!allowedValues.includes(spec[field]))
      report(`spec.${field}`, `${format(spec[field])} is none of ${allowedValues}`)
  }
  checkChoice('restartPolicy', ['Always', 'OnFailure', 'Never'])
  checkChoice('dnsPolicy', ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'])
  if (!(spec.terminationGracePeriodSeconds >= 0)) report('spec.terminationGracePeriodSeconds', 'missing or negative')
  if (!spec.schedulerName) report('spec.schedulerName', 'the default is missing')
  if (!spec.securityContext) report('spec.securityContext', 'the default is missing')
  const deadline = spec.activeDeadlineSeconds
  if (deadline !== undefined && (deadline < 1 || deadline > INT32_MAX))
    report('spec.activeDeadlineSeconds', 'out of range')
  for (const field of ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName']) {
    if (spec[field] && !isDnsSubdomain(spec[field]))
      report(`spec.${field}`, `${format(spec[field])} is not a valid name`)
  }
  if ((spec.serviceAccount ?? '') !== (spec.serviceAccountName ?? '')) report('spec.serviceAccount', 'differs')
  for (const field of ['hostname', 'subdomain']) {
    if (spec[field] && !isDnsLabel(spec[field])) report(`spec.${field}`, `${format(spec[field])} is not a valid name`)
  }
  for (const [key, value] of Object.entries<string>(spec.nodeSelector ?? {})) {
    if (!isQualifiedName(key) || !isLabelValue(value))
      report('spec.nodeSelector', `${format({ [key]: value })} is not a valid label`)
  }
  const gates: any[] = spec.schedulingGates ?? []
  for (const { name } of gates)
    if (!isQualifiedName(name)) report('spec.schedulingGates', `${format(name)} is not a valid name`)
  if (duplicatesIn(gates.map(({ name }) => name)).length > 0) report('spec.schedulingGates', 'duplicate gate')
  if (gates.length > 0 && spec.nodeName) report('spec.nodeName', 'must be empty for a gated pod')
}

function checkContainer(container: any, spec: any, path: string, report: Report): void {
  if (!isDnsLabel(container.name ?? '')) report(`${path}.name`, `${format(container.name)} is not a valid name`)
  if (!container.image) report(`${path}.image`, 'missing')
  if (!['Always', 'IfNotPresent', 'Never'].includes(container.imagePullPolicy))
    report(`${path}.imagePullPolicy`, 'is not valid')
  if (!['File', 'FallbackToLogsOnError'].includes(container.terminationMessagePolicy)) {
    report(`${path}.terminationMessagePolicy`, 'is not valid')
  }
  if (!container.terminationMessagePath) report(`${path}.terminationMessagePath`, 'the default is missing')
  const ports: any[] = container.ports ?? []
  for (const [i, port] of ports.entries()) {
    const fieldPath = `${path}.ports[${i}]`
    if (port.name && !isPortName(port.name))
      report(`${fieldPath}.name`, `${format(port.name)} is not a valid port name`)
    if (!isPort(port.containerPort)) report(`${fieldPath}.containerPort`, 'is not a valid port')
    if (port.hostPort && !isPort(port.hostPort)) report(`${fieldPath}.hostPort`, 'is not a valid port')
    if (!['TCP', 'UDP', 'SCTP'].includes(port.protocol))
      report(`${fieldPath}.protocol`, `${format(port.protocol)} is not a valid protocol`)
  }
  if (duplicatesIn(ports.map(({ name }) => name).filter(Boolean)).length > 0) report(`${path}.ports`, 'duplicate name')
  for (const { name } of container.env ?? [])
    if (!name || /=/.test(name)) report(`${path}.env`, `${format(name)} is not a valid variable`)
  checkMounts(container, spec, path, report)
  checkResources(container.resources ?? {}, `${path}.resources`, report)
}

const isPort = (port: unknown): boolean => Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65535

function checkMounts(container: any, spec: any, path: string, report: Report): void {
  const mounts: any[] = container.volumeMounts ?? []
  const devices: any[] = container.volumeDevices ?? []
  const volumes = new Map<string, any>((spec.volumes ?? []).map((volume: any) => [volume.name, volume]))
  for (const [i, mount] of mounts.entries()) {
    if (!volumes.has(mount.name))
      report(`${path}.volumeMounts[${i}].name`, `${format(mount.name)} is not a volume of the pod`)
    if (!mount.mountPath) report(`${path}.volumeMounts[${i}].mountPath`, 'missing')
    for (const field of ['subPath', 'subPathExpr']) {
      if (mount[field]?.startsWith('/') || hasParentSegment(mount[field] ?? ''))
        report(`${path}.volumeMounts[${i}].${field}`, 'must not leave the volume')
    }
    if (mount.subPath && mount.subPathExpr) report(`${path}.volumeMounts[${i}]`, 'subPath and subPathExpr')
  }
  for (const [i, device] of devices.entries()) {
    const volume = volumes.get(device.name)
    if (!volume?.persistentVolumeClaim && !volume?.ephemeral)
      report(`${path}.volumeDevices[${i}].name`, 'is not a claim of the pod')
    if (!device.devicePath || hasParentSegment(device.devicePath))
      report(`${path}.volumeDevices[${i}].devicePath`, 'missing or has a parent segment')
  }
  const paths = [...mounts.map(({ mountPath }) => mountPath), ...devices.map(({ devicePath }) => devicePath)]
  if (duplicatesIn(paths).length > 0) report(`${path}.volumeMounts`, 'duplicate path')
}

function checkResources({ requests = {}, limits = {} }: any, path: string, report: Report): void {
  for (const [field, amounts] of Object.entries<Record<string, string>>({ requests, limits })) {
    for (const [name, amount] of Object.entries(amounts)) {
      const fieldPath = `${path}.${field}[${name}]`
      if (!isQualifiedName(name)) report(fieldPath, 'is not a valid resource')
      const isStandard = ['cpu', 'memory', 'ephemeral-storage'].includes(name) || name.startsWith('hugepages-')
      if (!name.includes('/') && !isStandard) report(fieldPath, 'is not allowed for containers')
      if (isNegative(amount)) report(fieldPath, 'negative')
      if (name.includes('/') && !name.includes('kubernetes.io/') && !isWhole(amount))
        report(fieldPath, 'is not an integer')
    }
  }
  for (const [name, request] of Object.entries<string>(requests)) {
    const isOvercommittable = (!name.includes('/') || name.includes('kubernetes.io/')) && !name.startsWith('hugepages-')
    if (!isOvercommittable && (limits[name] === undefined || compare(request, limits[name]) !== 0)) {
      report(`${path}.requests[${name}]`, 'must equal its limit')
    }
  }
  for (const [name, limit] of Object.entries<string>(limits)) {
    if (requests[name] !== undefined && compare(requests[name], limit) > 0)
      report(`${path}.requests[${name}]`, 'above its limit')
  }
}

function checkHostPorts(containers: readonly any[], report: Report): void {
  const hostPorts = containers
    .flatMap(({ ports = [] }) => ports)
    .filter(({ hostPort }: any) => hostPort)
    .map(({ protocol, hostIP = '', hostPort }: any) => `${protocol} ${hostIP} ${hostPort}`)
  if (duplicatesIn(hostPorts).length > 0) report('spec.containers', 'duplicate host port')
}

function checkVolumes(podName: string | undefined, volumes: readonly any[], report: Report): void {
  if (duplicatesIn(volumes.map(({ name }) => name)).length > 0) report('spec.volumes', 'duplicate name')
  const ephemeralClaims = volumes
    .filter(({ ephemeral }) => ephemeral && podName !== undefined)
    .map(({ name }) => `${podName}-${name}`)
  for (const [i, volume] of volumes.entries()) {
    const fieldPath = `spec.volumes[${i}]`
    const { name, ...sources } = volume
    if (!isDnsLabel(name)) report(`${fieldPath}.name`, `${format(name)} is not a valid name`)
    const sourceNames = Object.keys(sources)
    if (sourceNames.length !== 1) report(fieldPath, `exactly one source is required, not ${format(sourceNames)}`)
    const { persistentVolumeClaim: claim, emptyDir, hostPath, csi, ephemeral, secret, configMap } = sources
    if (claim && !claim.claimName) report(`${fieldPath}.persistentVolumeClaim.claimName`, 'missing')
    if (claim && ephemeralClaims.includes(claim.claimName))
      report(fieldPath, 'the claim belongs to an ephemeral volume')
    if (isNegative(emptyDir?.sizeLimit)) report(`${fieldPath}.emptyDir.sizeLimit`, 'negative')
    if (hostPath && (!hostPath.path || hasParentSegment(hostPath.path)))
      report(`${fieldPath}.hostPath.path`, 'is not a valid path')
    if (csi && !isDriverName(csi.driver ?? ''))
      report(`${fieldPath}.csi.driver`, `${format(csi.driver)} is not a valid driver`)
    if (secret && !secret.secretName) report(`${fieldPath}.secret.secretName`, 'missing')
    if (configMap && !configMap.name) report(`${fieldPath}.configMap.name`, 'missing')
    for (const source of [secret, configMap]) {
      if (source?.defaultMode < 0 || source?.defaultMode > 0o777) report(`${fieldPath}.defaultMode`, 'out of range')
    }
    if (ephemeral) {
      if (!ephemeral.volumeClaimTemplate) report(`${fieldPath}.ephemeral.volumeClaimTemplate`, 'missing')
      else
        checkClaimSpec(
          ephemeral.volumeClaimTemplate.spec ?? {},
          `${fieldPath}.ephemeral.volumeClaimTemplate.spec`,
          report,
        )
    }
  }
}

function checkTolerations(tolerations: readonly any[], report: Report): void {
  for (const [
    i,
    { key = '', operator = 'Equal', value = '', effect = '', tolerationSeconds },
  ] of tolerations.entries()) {
    const fieldPath = `spec.tolerations[${i}]`
    if (key && !isQualifiedName(key)) report(`${fieldPath}.key`, `${format(key)} is not a valid label key`)
    if (!key && operator !== 'Exists') report(`${fieldPath}.operator`, 'only Exists is allowed without a key')
    if (!['', 'Equal', 'Exists', 'Lt', 'Gt'].includes(operator))
      report(`${fieldPath}.operator`, `${format(operator)} is not a valid operator`)
    if (operator === 'Exists' && value) report(`${fieldPath}.value`, 'must be empty')
    if (operator !== 'Exists' && !isLabelValue(value))
      report(`${fieldPath}.value`, `${format(value)} is not a valid label value`)
    if (!['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect))
      report(`${fieldPath}.effect`, 'is not a valid effect')
    if (tolerationSeconds !== undefined && effect !== 'NoExecute')
      report(`${fieldPath}.tolerationSeconds`, 'is allowed for NoExecute only')
  }
}

function checkAffinity(affinity: any, report: Report): void {
  const path = 'spec.affinity.nodeAffinity'
  const requiredSelector = affinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (requiredSelector) checkNodeSelector(requiredSelector, `${path}.required`, report)
  for (const { weight, preference = {} } of affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
    if (!(weight >= 1 && weight <= 100)) report(`${path}.preferred`, `${format(weight)} is not a valid weight`)
    checkNodeTerm(preference, `${path}.preferred`, report)
  }
}

function checkPodChange(spec: any, old: any, report: Report): void {
  const isGated = old.schedulingGates?.length > 0
  const immutableFieldsOf = ({
    activeDeadlineSeconds,
    tolerations,
    schedulingGates,
    nodeName,
    ...schedulingFields
  }: any) => {
    const { nodeSelector, affinity, containers, initContainers, ephemeralContainers, ...fixedFields } = schedulingFields
    const omitImages = (list: any[] = []) => list.map(({ image, ...container }) => container)
    return {
      ...fixedFields,
      containers: omitImages(containers),
      initContainers: omitImages(initContainers),
      ...(isGated ? {} : { nodeSelector, affinity }), // the node constraints of a gated pod may change
    }
  }
  if (!isEqualJson(immutableFieldsOf(spec), immutableFieldsOf(old))) report('spec', 'an immutable field changed')
  if (old.nodeName && spec.nodeName !== old.nodeName) report('spec.nodeName', 'cannot change')
  const [deadline, oldDeadline] = [spec.activeDeadlineSeconds, old.activeDeadlineSeconds]
  if (oldDeadline !== undefined && !(deadline <= oldDeadline)) report('spec.activeDeadlineSeconds', 'can only decrease')
  for (const toleration of old.tolerations ?? []) {
    const omitSeconds = ({ tolerationSeconds: _, ...rest }: any) => rest
    if (
      !(spec.tolerations ?? []).some((newToleration: any) =>
        isEqualJson(omitSeconds(newToleration), omitSeconds(toleration)),
      )
    )
      report('spec.tolerations', 'an existing toleration was removed')
  }
  const gates = new Set((old.schedulingGates ?? []).map(({ name }: any) => name))
  for (const { name } of spec.schedulingGates ?? [])
    if (!gates.has(name)) report('spec.schedulingGates', `${format(name)} cannot be added`)
}
