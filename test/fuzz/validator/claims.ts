// PersistentVolumeClaim: allowed requests, server-set fields, and allowed changes.
import { isEmpty, type Say, same, show } from './findings.ts'
import { isDnsLabel, isDnsSubdomain, isQualifiedName } from './names.ts'
import { compare, isNegative, isPositive, isWhole, sameAmounts } from './quantity.ts'
import { checkLabelSelector } from './selectors.ts'

export const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod']
const VOLUME_MODES = ['Filesystem', 'Block']
const IO = ['iops', 'throughput']
const MI = '1Mi'
const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class'
const RESOURCE_STATUSES = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizePending',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'ControllerModifyVolumePending',
  'ControllerModifyVolumeInProgress',
  'ControllerModifyVolumeFailed',
]

export function checkClaim(claim: any, say: Say, old?: any): void {
  const { spec = {}, status = {} } = claim
  checkClaimSpec(spec, 'spec', say)
  for (const where of ['requests', 'limits']) {
    const throughput = spec.resources?.[where]?.throughput
    if (throughput !== undefined && compare(throughput, MI) < 0) {
      say(`spec.resources.${where}.throughput`, `${show(throughput)} was not turned into bytes per second`)
    }
  }
  checkHighWaterMark(spec, say, old?.spec)
  if (!old && !same(status, { phase: 'Pending' })) say('status', `a new claim begins Pending, not ${show(status)}`)
  if (!old && !claim.metadata.finalizers?.includes('kubernetes.io/pvc-protection')) {
    say('metadata.finalizers', 'the protection is missing')
  }
  checkClaimStatus(status, say)
  if (old) checkClaimChange(claim, old, say)
}

/** Also applies to the template of a pod's ephemeral volume. */
export function checkClaimSpec(spec: any, path: string, say: Say): void {
  checkAccessModes(spec.accessModes ?? [], `${path}.accessModes`, say)
  checkLabelSelector(spec.selector, `${path}.selector`, say)
  const { requests = {}, limits = {} } = spec.resources ?? {}
  if (!isPositive(requests.storage)) say(`${path}.resources.requests.storage`, `${show(requests.storage)} is no size`)
  for (const [where, amounts] of Object.entries({ requests, limits })) {
    for (const key of IO) {
      const amount = (amounts as any)[key]
      if (amount === undefined) continue
      if (!isPositive(amount) || !isWhole(amount)) {
        say(`${path}.resources.${where}.${key}`, `${show(amount)} is no count above zero`)
      }
    }
  }
  for (const key of IO) {
    if (requests[key] !== undefined && limits[key] !== undefined && compare(requests[key], limits[key]) > 0) {
      say(`${path}.resources.requests.${key}`, 'more than the limit')
    }
  }
  for (const field of ['storageClassName', 'volumeAttributesClassName']) {
    if (spec[field] && !isDnsSubdomain(spec[field])) say(`${path}.${field}`, `${show(spec[field])} is no class's name`)
  }
  if (!VOLUME_MODES.includes(spec.volumeMode)) say(`${path}.volumeMode`, `${show(spec.volumeMode)} is no mode`)
  checkDataSource(spec, path, say)
}

export function checkAccessModes(modes: readonly string[], path: string, say: Say): void {
  if (modes.length === 0) say(path, 'missing')
  for (const mode of modes) if (!ACCESS_MODES.includes(mode)) say(path, `${show(mode)} is no access mode`)
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod')) {
    say(path, 'ReadWriteOncePod stands alone')
  }
}

function checkDataSource({ dataSource, dataSourceRef }: any, path: string, say: Say): void {
  for (const [field, source] of Object.entries<any>({ dataSource, dataSourceRef })) {
    if (source === undefined) continue
    const at = `${path}.${field}`
    if (!source.name) say(`${at}.name`, 'missing')
    if (!source.kind) say(`${at}.kind`, 'missing')
    if (!source.apiGroup && source.kind !== 'PersistentVolumeClaim') say(at, 'only claims have no group')
    if (source.apiGroup && !isDnsSubdomain(source.apiGroup))
      say(`${at}.apiGroup`, `${show(source.apiGroup)} is no group`)
    if (source.namespace && !isDnsLabel(source.namespace)) say(`${at}.namespace`, 'is no namespace')
  }
  if (!dataSource || !dataSourceRef) return
  if (dataSourceRef.namespace) say(path, 'dataSource with a source from another namespace')
  else if (!same(dataSource, dataSourceRef)) say(path, 'dataSource and dataSourceRef differ')
}

/** The highest request ever made, kept by the server for the quota. */
function checkHighWaterMark(spec: any, say: Say, old?: any): void {
  const mark = spec.allocatedResources?.storage
  const extra = Object.keys(spec.allocatedResources ?? {}).filter((key) => key !== 'storage')
  if (extra.length > 0) say('spec.allocatedResources', `holds ${show(extra)}`)
  const request = spec.resources?.requests?.storage
  if (mark !== undefined && compare(mark, request) < 0) say('spec.allocatedResources', `${mark} is below ${request}`)
  if (!old) {
    if (mark !== undefined && compare(mark, request) !== 0) say('spec.allocatedResources', `${mark} is not ${request}`)
    return
  }
  const before = old.allocatedResources?.storage
  if (before === undefined && mark === undefined) return
  const highest = compare(before ?? '0', request) > 0 ? before : request
  if (mark === undefined || compare(mark, highest) !== 0) {
    say('spec.allocatedResources', `${show(mark)} is not the highest request so far, ${highest}`)
  }
}

function checkClaimStatus(status: any, say: Say): void {
  for (const [key, amount] of Object.entries(status.capacity ?? {})) {
    if (isNegative(amount)) say(`status.capacity[${key}]`, 'negative')
  }
  for (const [key, amount] of Object.entries(status.allocatedResources ?? {})) {
    checkResourceKey(key, 'status.allocatedResources', say)
    if (isNegative(amount)) say(`status.allocatedResources[${key}]`, 'negative')
  }
  for (const [key, word] of Object.entries<string>(status.allocatedResourceStatuses ?? {})) {
    checkResourceKey(key, 'status.allocatedResourceStatuses', say)
    if (!RESOURCE_STATUSES.includes(word))
      say(`status.allocatedResourceStatuses[${key}]`, `${show(word)} means nothing`)
  }
}

function checkResourceKey(key: string, path: string, say: Say): void {
  if (!isQualifiedName(key)) say(path, `${show(key)} is no resource`)
  const native = !key.includes('/') || key.includes('kubernetes.io/')
  if (native && !['storage', ...IO].includes(key)) say(path, `${show(key)} is no resource of a claim`)
}

function checkClaimChange(claim: any, old: any, say: Say): void {
  const bound = old.status?.phase === 'Bound'
  const [now, before] = [claim.spec, old.spec]
  const currentClass = old.status?.currentVolumeAttributesClassName

  if (!sameAmounts(settled(now.resources?.requests, bound), settled(before.resources?.requests, bound))) {
    say('spec.resources.requests', 'changed on a claim that may not')
  }
  if (
    !sameAmounts(without(now.resources?.limits, bound ? IO : []), without(before.resources?.limits, bound ? IO : []))
  ) {
    say('spec.resources.limits', 'changed on a claim that may not')
  }
  const [wanted, had] = [now.resources?.requests?.storage, before.resources?.requests?.storage]
  const capacity = old.status?.capacity?.storage
  if (compare(wanted, had) < 0 && capacity !== undefined && compare(wanted, capacity) < 0) {
    say('spec.resources.requests.storage', `${wanted} is less than the volume has, ${capacity}`)
  }
  for (const field of ['accessModes', 'selector', 'volumeMode', 'dataSource', 'dataSourceRef']) {
    if (!sameField(now[field], before[field])) say(`spec.${field}`, 'cannot change')
  }
  if (before.volumeName && now.volumeName !== before.volumeName) say('spec.volumeName', 'can be set once')
  checkClassChange(claim, old, say)
  if ((now.volumeAttributesClassName ?? null) !== (before.volumeAttributesClassName ?? null)) {
    if (!bound) say('spec.volumeAttributesClassName', 'cannot change before the claim is bound')
    if (currentClass !== undefined && !now.volumeAttributesClassName) {
      say('spec.volumeAttributesClassName', 'a class is in effect: none is no choice')
    }
  }
}

/** For fields where `{}` differs from absent, such as a selector. */
const sameField = (a: unknown, b: unknown): boolean => (a === undefined) === (b === undefined) && same(a, b)

const without = (amounts: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(amounts ?? {}).filter(([key]) => !keys.includes(key)))

const settled = (requests: Record<string, string> | undefined, bound: boolean): Record<string, string> =>
  without(requests, bound ? ['storage', ...IO] : [])

function checkClassChange(claim: any, old: any, say: Say): void {
  const now = claim.spec.storageClassName
  const before = old.spec.storageClassName
  const annotation = claim.metadata.annotations?.[BETA_CLASS]
  const annotationBefore = old.metadata.annotations?.[BETA_CLASS]
  const movedToField = annotationBefore !== undefined && before === undefined && now === annotationBefore
  if (annotation !== annotationBefore && !(movedToField && annotation === undefined)) {
    if (!isEmpty(annotation) || !isEmpty(annotationBefore)) say(`metadata.annotations[${BETA_CLASS}]`, 'cannot change')
  }
  if (now === before) return
  const filledIn = before === undefined && (annotationBefore === undefined || annotationBefore === now)
  if (!filledIn) say('spec.storageClassName', `changed from ${show(before)} to ${show(now)}`)
}
