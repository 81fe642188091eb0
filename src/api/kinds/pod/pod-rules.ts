// Validates a pod's spec. Other *-rules.ts files in this folder validate containers, volumes, affinity, tolerations and
// changes.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { validateLabels } from '../../meta.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { validateIP } from '../../network-addresses.ts'
import { validateAffinity, validateSpreadConstraints } from './affinity-rules.ts'
import { validateContainers, validateId, validateResources } from './container-rules.ts'
import type { Pod, PodSpec } from './pod-schema.ts'
import { validateVolumes } from './pod-volume-rules.ts'
import { validateTolerations } from './toleration-rules.ts'

export function validatePodSpec(pod: Pod, errors: FieldErrors, context: RuleContext): void {
  const spec = pod.spec ?? { containers: [] }
  const volumes = validateVolumes({ spec, podName: pod.metadata.name ?? '', errors, context })
  validateContainers({ spec, volumes, errors })
  validateResources(spec.resources, 'spec.resources', errors)
  validatePolicies(spec, errors)
  validateNames(spec, errors)
  validateLifetime(spec, errors)
  validatePlacement(spec, errors)
  validateNetwork(spec, errors)
  validateSecurity(spec, errors)
  validateTokens(spec, errors)
}

/** Validates rules that only apply on create. */
export function validateNewPod({ spec }: Pod, errors: FieldErrors): void {
  if (spec?.ephemeralContainers?.length) errors.forbidden('spec.ephemeralContainers', 'cannot be set on create')
  if (spec?.nodeName && spec.schedulingGates?.length) {
    errors.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared')
  }
}

const RESTART_POLICIES = ['Always', 'OnFailure', 'Never']
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']
const PREEMPTION_POLICIES = ['PreemptLowerPriority', 'Never']
const OPERATING_SYSTEMS = ['linux', 'windows']

function validatePolicies(spec: PodSpec, errors: FieldErrors): void {
  validateOneOf(spec.restartPolicy ?? '', RESTART_POLICIES, 'spec.restartPolicy', errors)
  validateOneOf(spec.dnsPolicy ?? '', DNS_POLICIES, 'spec.dnsPolicy', errors)
  if (spec.preemptionPolicy !== undefined) {
    validateOneOf(spec.preemptionPolicy, PREEMPTION_POLICIES, 'spec.preemptionPolicy', errors)
  }
  if (spec.os?.name === '') errors.required('spec.os.name')
  else if (spec.os && !OPERATING_SYSTEMS.includes(spec.os.name))
    errors.notSupported('spec.os', spec.os.name, OPERATING_SYSTEMS)
}

function validateOneOf(value: string, supportedValues: readonly string[], field: string, errors: FieldErrors): void {
  if (value === '') errors.required(field)
  else if (!supportedValues.includes(value)) errors.notSupported(field, value, supportedValues)
}

const SUBDOMAIN_FIELDS = ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName'] as const
const LABEL_FIELDS = ['hostname', 'subdomain'] as const

function validateNames(spec: PodSpec, errors: FieldErrors): void {
  for (const name of SUBDOMAIN_FIELDS) {
    const value = spec[name]
    if (value) errors.invalidAll(`spec.${name}`, value, dns1123SubdomainProblems(value))
  }
  for (const name of LABEL_FIELDS) {
    const value = spec[name]
    if (value) errors.invalidAll(`spec.${name}`, value, dns1123LabelProblems(value))
  }
  for (const [index, { conditionType }] of (spec.readinessGates ?? []).entries()) {
    errors.invalidAll(
      `spec.readinessGates[${index}].conditionType`,
      conditionType,
      qualifiedNameProblems(conditionType),
    )
  }
  const gates = new Set<string>()
  for (const [index, { name }] of (spec.schedulingGates ?? []).entries()) {
    errors.invalidAll(`spec.schedulingGates[${index}]`, name, qualifiedNameProblems(name))
    if (gates.has(name)) errors.duplicate(`spec.schedulingGates[${index}]`, name)
    gates.add(name)
  }
}

const DEADLINE_SECONDS_MAX = 2_147_483_647

function validateLifetime(spec: PodSpec, errors: FieldErrors): void {
  const gracePeriodSeconds = spec.terminationGracePeriodSeconds
  if (gracePeriodSeconds === undefined) errors.required('spec.terminationGracePeriodSeconds')
  else if (gracePeriodSeconds < 0) {
    errors.invalid('spec.terminationGracePeriodSeconds', gracePeriodSeconds, 'must be greater than or equal to 0')
  }
  const deadlineSeconds = spec.activeDeadlineSeconds
  if (deadlineSeconds !== undefined && (deadlineSeconds < 1 || deadlineSeconds > DEADLINE_SECONDS_MAX)) {
    errors.invalid(
      'spec.activeDeadlineSeconds',
      deadlineSeconds,
      `must be between 1 and ${DEADLINE_SECONDS_MAX}, inclusive`,
    )
  }
}

function validatePlacement(spec: PodSpec, errors: FieldErrors): void {
  validateLabels(spec.nodeSelector, 'spec.nodeSelector', errors)
  if (spec.affinity) validateAffinity(spec.affinity, 'spec.affinity', errors)
  validateTolerations(spec.tolerations ?? [], 'spec.tolerations', errors)
  validateSpreadConstraints(spec.topologySpreadConstraints ?? [], 'spec.topologySpreadConstraints', errors)
  if (spec.overhead) validateResources({ limits: spec.overhead }, 'spec.overhead', errors)
}

const NAMESERVERS_MAX = 3

function validateNetwork(spec: PodSpec, errors: FieldErrors): void {
  for (const [index, { ip, hostnames = [] }] of (spec.hostAliases ?? []).entries()) {
    validateIP(ip, `spec.hostAliases[${index}].ip`, errors)
    for (const [innerIndex, name] of hostnames.entries()) {
      errors.invalidAll(`spec.hostAliases[${index}].hostnames[${innerIndex}]`, name, dns1123SubdomainProblems(name))
    }
  }
  validateDns(spec, errors)
  if (!spec.hostNetwork) return
  for (const [index, { ports = [] }] of spec.containers.entries()) {
    for (const [innerIndex, { hostPort = 0, containerPort }] of ports.entries()) {
      if (hostPort === containerPort) continue
      const field = `spec.containers[${index}].ports[${innerIndex}].hostPort`
      errors.invalid(field, hostPort, 'must match `containerPort` when `hostNetwork` is true')
    }
  }
}

function validateDns({ dnsPolicy, dnsConfig }: PodSpec, errors: FieldErrors): void {
  if (dnsPolicy === 'None' && !dnsConfig) {
    errors.required('spec.dnsConfig', 'must provide `dnsConfig` when `dnsPolicy` is None')
  } else if (dnsPolicy === 'None' && !dnsConfig?.nameservers?.length) {
    errors.required('spec.dnsConfig.nameservers', 'must provide at least one DNS nameserver when `dnsPolicy` is None')
  }
  const { nameservers = [], options = [] } = dnsConfig ?? {}
  if (nameservers.length > NAMESERVERS_MAX) {
    errors.invalid('spec.dnsConfig.nameservers', nameservers, `must not have more than ${NAMESERVERS_MAX} nameservers`)
  }
  for (const [index, address] of nameservers.entries()) {
    validateIP(address, `spec.dnsConfig.nameservers[${index}]`, errors)
  }
  for (const [index, { name }] of options.entries()) {
    if (!name) errors.required(`spec.dnsConfig.options[${index}]`, 'must not be empty')
  }
}

const FS_GROUP_POLICIES = ['Always', 'OnRootMismatch']

function validateSecurity(spec: PodSpec, errors: FieldErrors): void {
  const context = spec.securityContext ?? {}
  const field = 'spec.securityContext'
  validateId(context.fsGroup, `${field}.fsGroup`, errors)
  validateId(context.runAsUser, `${field}.runAsUser`, errors)
  validateId(context.runAsGroup, `${field}.runAsGroup`, errors)
  for (const [index, group] of (context.supplementalGroups ?? []).entries()) {
    validateId(group, `${field}.supplementalGroups[${index}]`, errors)
  }
  const policy = context.fsGroupChangePolicy
  if (policy !== undefined && !FS_GROUP_POLICIES.includes(policy)) {
    errors.notSupported(`${field}.fsGroupChangePolicy`, policy, FS_GROUP_POLICIES)
  }
  if (spec.shareProcessNamespace && spec.hostPID) {
    errors.invalid('spec.shareProcessNamespace', true, 'ShareProcessNamespace and HostPID cannot both be enabled')
  }
}

/** Rejects projected tokens of a pod without a service account, because a token belongs to a service account. */
function validateTokens(spec: PodSpec, errors: FieldErrors): void {
  if (spec.serviceAccountName) return
  for (const [index, { projected }] of (spec.volumes ?? []).entries()) {
    for (const [innerIndex, { serviceAccountToken }] of (projected?.sources ?? []).entries()) {
      if (!serviceAccountToken) continue
      const field = `spec.volumes[${index}].projected.sources[${innerIndex}].serviceAccountToken`
      errors.forbidden(field, 'must not be specified when serviceAccountName is not set')
    }
  }
}
