// Checks StatefulSets and the ControllerRevisions of their history.
import { isDeepStrictEqual } from 'node:util'
import { checkClaimSpec } from './claims.ts'
import { format, isEqualJson, isRecord, type Report } from './findings.ts'
import { checkLabelsAndAnnotations } from './metadata.ts'
import { isDnsLabel } from './names.ts'
import { checkPodSpec } from './pods.ts'
import { hasSameAmounts } from './quantity.ts'
import { checkLabelSelector, matchesSelector } from './selectors.ts'

const INT32_MAX = 2 ** 31 - 1

export function checkStatefulSet({ spec = {}, status = {} }: any, report: Report, old?: any): void {
  checkCount(spec.replicas, 'spec.replicas', report)
  checkCount(spec.minReadySeconds ?? 0, 'spec.minReadySeconds', report)
  checkCount(spec.ordinals?.start ?? 0, 'spec.ordinals.start', report)
  if (!Number.isInteger(spec.revisionHistoryLimit)) report('spec.revisionHistoryLimit', 'the default is missing')
  if (!['OrderedReady', 'Parallel'].includes(spec.podManagementPolicy))
    report('spec.podManagementPolicy', `${format(spec.podManagementPolicy)} is not a valid policy`)
  for (const field of ['whenDeleted', 'whenScaled']) {
    const policy = spec.persistentVolumeClaimRetentionPolicy?.[field]
    if (!['Retain', 'Delete'].includes(policy))
      report(`spec.persistentVolumeClaimRetentionPolicy.${field}`, `${format(policy)} is not a valid policy`)
  }
  if (spec.serviceName && !isDnsLabel(spec.serviceName))
    report('spec.serviceName', `${format(spec.serviceName)} is not a valid name`)
  checkUpdateStrategy(spec.updateStrategy ?? {}, report)
  checkSelector(spec, report)
  checkTemplates(spec, report)
  if (!old && !isDeepStrictEqual(status, { replicas: 0, availableReplicas: 0 }))
    report('status', `a new set must have no replicas, not ${format(status)}`)
  checkSetStatus(status, report)
  if (old) checkSetChange({ spec, status }, old, report)
}

function checkCount(value: unknown, path: string, report: Report): void {
  const isCount = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= INT32_MAX
  if (!isCount) report(path, `${format(value)} is not a valid count`)
}

function checkUpdateStrategy({ type, rollingUpdate }: any, report: Report): void {
  const path = 'spec.updateStrategy'
  if (!['RollingUpdate', 'OnDelete'].includes(type)) report(`${path}.type`, `${format(type)} is not a valid type`)
  if (rollingUpdate === undefined) return
  if (type === 'OnDelete') report(`${path}.rollingUpdate`, 'must be absent for OnDelete')
  checkCount(rollingUpdate.partition, `${path}.rollingUpdate.partition`, report)
  const limit = rollingUpdate.maxUnavailable
  const percent = typeof limit === 'string' ? /^([0-9]+)%$/.exec(limit)?.[1] : undefined
  const isPercentage = percent !== undefined && Number(percent) >= 1 && Number(percent) <= 100
  const isPositiveCount = Number.isInteger(limit) && limit >= 1 && limit <= INT32_MAX
  if (!isPercentage && !isPositiveCount)
    report(`${path}.rollingUpdate.maxUnavailable`, `${format(limit)} is neither a percentage nor a positive count`)
}

function checkSelector({ selector, template = {} }: any, report: Report): void {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) report('spec.selector', 'missing or empty')
  checkLabelSelector(selector, 'spec.selector', report)
  const labels: Record<string, string> = template.metadata?.labels ?? {}
  if (!matchesSelector(selector, labels)) report('spec.template.metadata.labels', 'are not selected by the set')
}

/** Checks the pods that the set creates: each claim template becomes a volume and replaces one of the same name. */
function checkTemplates({ template = {}, volumeClaimTemplates = [] }: any, report: Report): void {
  const reportInTemplate: Report = (path, problem) => report(`spec.template.${path}`, problem)
  for (const [i, { spec = {} }] of volumeClaimTemplates.entries())
    checkClaimSpec(spec, `spec.volumeClaimTemplates[${i}].spec`, report)
  checkLabelsAndAnnotations(template.metadata ?? {}, reportInTemplate)
  const { hostname: _, subdomain: __, ...spec } = template.spec ?? {} // the controller sets both
  const claimNames: string[] = volumeClaimTemplates.map(({ metadata }: any) => metadata?.name ?? '')
  const volumes = [
    ...claimNames.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    ...(spec.volumes ?? []).filter(({ name }: any) => !claimNames.includes(name)),
  ]
  checkPodSpec({ ...spec, volumes }, reportInTemplate)
  if (spec.restartPolicy !== 'Always') reportInTemplate('spec.restartPolicy', 'must be Always')
  if (spec.activeDeadlineSeconds !== undefined) reportInTemplate('spec.activeDeadlineSeconds', 'is not supported')
  if (spec.ephemeralContainers?.length > 0) reportInTemplate('spec.ephemeralContainers', 'are not allowed')
}

function checkSetStatus(status: any, report: Report): void {
  const counters = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas']
  checkCount(status.replicas, 'status.replicas', report)
  for (const field of [...counters, 'collisionCount']) checkCount(status[field] ?? 0, `status.${field}`, report)
  if (status.observedGeneration < 0) report('status.observedGeneration', 'negative')
  for (const field of counters) if (status[field] > status.replicas) report(`status.${field}`, 'more than replicas')
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0))
    report('status.availableReplicas', 'more than readyReplicas')
}

/** The fields of a spec that can change. */
const MUTABLE_FIELDS = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
  'revisionHistoryLimit',
]

function checkSetChange({ spec, status }: any, old: any, report: Report): void {
  const oldSpec = old.spec ?? {}
  for (const field of new Set([...Object.keys(spec), ...Object.keys(oldSpec)])) {
    if (MUTABLE_FIELDS.includes(field) || field === 'volumeClaimTemplates') continue
    if (!isEqualJson(spec[field], oldSpec[field])) report(`spec.${field}`, 'cannot change')
  }
  if (!hasSameClaims(spec.volumeClaimTemplates ?? [], oldSpec.volumeClaimTemplates ?? []))
    report('spec.volumeClaimTemplates', 'cannot change')
  if ((status.collisionCount ?? 0) < (old.status?.collisionCount ?? 0)) report('status.collisionCount', 'decreased')
}

/** Compares claim templates. Equal amounts in different units, such as 10G and 10e9, are not a change. */
const hasSameClaims = (claims: readonly any[], oldClaims: readonly any[]): boolean =>
  claims.length === oldClaims.length &&
  claims.every((claim, i) => {
    const [{ resources = {}, ...spec }, { resources: oldResources = {}, ...oldSpec }] = [
      claim.spec ?? {},
      oldClaims[i].spec ?? {},
    ]
    return (
      isEqualJson({ ...claim, spec }, { ...oldClaims[i], spec: oldSpec }) &&
      hasSameAmounts(resources.requests, oldResources.requests) &&
      hasSameAmounts(resources.limits, oldResources.limits)
    )
  })

export function checkControllerRevision({ data, revision }: any, report: Report, old?: any): void {
  if (!Number.isInteger(revision) || revision < 0 || revision >= 2 ** 63)
    report('revision', `${format(revision)} is not a valid revision`)
  if (!isRecord(data)) report('data', `${format(data)} is not an object`)
  if (old && !isDeepStrictEqual(data, old.data)) report('data', 'cannot change')
}
