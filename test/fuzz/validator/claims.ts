// Checks PersistentVolumeClaims: requests, fields set by the server, and allowed changes.
import { format, isEmpty, isEqualJson, type Report } from './findings.ts'
import { isDnsLabel, isDnsSubdomain, isQualifiedName } from './names.ts'
import { compare, hasSameAmounts, isNegative, isPositive, isWhole } from './quantity.ts'
import { checkLabelSelector } from './selectors.ts'

const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod']
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

export function checkClaim(claim: any, report: Report, old?: any): void {
  const { spec = {}, status = {} } = claim
  checkClaimSpec(spec, 'spec', report)
  for (const field of ['requests', 'limits']) {
    const throughput = spec.resources?.[field]?.throughput
    if (throughput !== undefined && compare(throughput, MI) < 0) {
      report(`spec.resources.${field}.throughput`, `${format(throughput)} was not converted to bytes per second`)
    }
  }
  checkHighWaterMark(spec, report, old?.spec)
  // The server sets one condition on a new claim: its class waits for the first consumer.
  const { conditions = [], ...newStatus } = status
  const isWaiting = conditions.length === 1 && conditions[0].type === 'ReadyForFirstConsumer'
  if (!old && (!isEqualJson(newStatus, { phase: 'Pending' }) || (conditions.length > 0 && !isWaiting)))
    report('status', `a new claim must be Pending, not ${format(status)}`)
  if (!old && !claim.metadata.finalizers?.includes('kubernetes.io/pvc-protection')) {
    report('metadata.finalizers', 'the protection finalizer is missing')
  }
  checkClaimStatus(status, report)
  if (old) checkClaimChange(claim, old, report)
}

/** Checks the spec of a claim, or of the template of an ephemeral volume. */
export function checkClaimSpec(spec: any, path: string, report: Report): void {
  checkAccessModes(spec.accessModes ?? [], `${path}.accessModes`, report)
  checkLabelSelector(spec.selector, `${path}.selector`, report)
  const { requests = {}, limits = {} } = spec.resources ?? {}
  if (!isPositive(requests.storage))
    report(`${path}.resources.requests.storage`, `${format(requests.storage)} is not a valid size`)
  for (const [field, amounts] of Object.entries({ requests, limits })) {
    for (const key of IO) {
      const amount = (amounts as any)[key]
      if (amount === undefined) continue
      if (!isPositive(amount) || !isWhole(amount)) {
        report(`${path}.resources.${field}.${key}`, `${format(amount)} is not a positive integer`)
      }
    }
  }
  for (const key of IO) {
    if (requests[key] !== undefined && limits[key] !== undefined && compare(requests[key], limits[key]) > 0) {
      report(`${path}.resources.requests.${key}`, 'more than the limit')
    }
  }
  for (const field of ['storageClassName', 'volumeAttributesClassName']) {
    if (spec[field] && !isDnsSubdomain(spec[field]))
      report(`${path}.${field}`, `${format(spec[field])} is not a valid class name`)
  }
  if (!VOLUME_MODES.includes(spec.volumeMode))
    report(`${path}.volumeMode`, `${format(spec.volumeMode)} is not a valid mode`)
  checkDataSource(spec, path, report)
}

export function checkAccessModes(modes: readonly string[], path: string, report: Report): void {
  if (modes.length === 0) report(path, 'missing')
  for (const mode of modes) if (!ACCESS_MODES.includes(mode)) report(path, `${format(mode)} is not a valid access mode`)
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod')) {
    report(path, 'ReadWriteOncePod cannot be combined with other modes')
  }
}

function checkDataSource({ dataSource, dataSourceRef }: any, path: string, report: Report): void {
  for (const [field, source] of Object.entries<any>({ dataSource, dataSourceRef })) {
    if (source === undefined) continue
    const fieldPath = `${path}.${field}`
    if (!source.name) report(`${fieldPath}.name`, 'missing')
    if (!source.kind) report(`${fieldPath}.kind`, 'missing')
    if (!source.apiGroup && source.kind !== 'PersistentVolumeClaim') report(fieldPath, 'apiGroup is missing')
    if (source.apiGroup && !isDnsSubdomain(source.apiGroup))
      report(`${fieldPath}.apiGroup`, `${format(source.apiGroup)} is not a valid group`)
    if (source.namespace && !isDnsLabel(source.namespace)) report(`${fieldPath}.namespace`, 'is not a valid namespace')
  }
  if (!dataSource || !dataSourceRef) return
  if (dataSourceRef.namespace) report(path, 'dataSource with a source from another namespace')
  else if (!isEqualJson(dataSource, dataSourceRef)) report(path, 'dataSource and dataSourceRef differ')
}

/** Checks the high-water mark: the highest request so far, which the server stores for quotas. */
function checkHighWaterMark(spec: any, report: Report, old?: any): void {
  const mark = spec.allocatedResources?.storage
  const extraKeys = Object.keys(spec.allocatedResources ?? {}).filter((key) => key !== 'storage')
  if (extraKeys.length > 0) report('spec.allocatedResources', `has unexpected keys ${format(extraKeys)}`)
  const request = spec.resources?.requests?.storage
  if (mark !== undefined && compare(mark, request) < 0) report('spec.allocatedResources', `${mark} is below ${request}`)
  if (!old) {
    if (mark !== undefined && compare(mark, request) !== 0)
      report('spec.allocatedResources', `${mark} is not ${request}`)
    return
  }
  const oldMark = old.allocatedResources?.storage
  if (oldMark === undefined && mark === undefined) return
  const highestRequest = compare(oldMark ?? '0', request) > 0 ? oldMark : request
  if (mark === undefined || compare(mark, highestRequest) !== 0) {
    report('spec.allocatedResources', `${format(mark)} is not the highest request so far, ${highestRequest}`)
  }
}

function checkClaimStatus(status: any, report: Report): void {
  for (const [key, amount] of Object.entries(status.capacity ?? {})) {
    if (isNegative(amount)) report(`status.capacity[${key}]`, 'negative')
  }
  for (const [key, amount] of Object.entries(status.allocatedResources ?? {})) {
    checkResourceKey(key, 'status.allocatedResources', report)
    if (isNegative(amount)) report(`status.allocatedResources[${key}]`, 'negative')
  }
  for (const [key, resourceStatus] of Object.entries<string>(status.allocatedResourceStatuses ?? {})) {
    checkResourceKey(key, 'status.allocatedResourceStatuses', report)
    if (!RESOURCE_STATUSES.includes(resourceStatus))
      report(`status.allocatedResourceStatuses[${key}]`, `${format(resourceStatus)} is not a valid status`)
  }
}

function checkResourceKey(key: string, path: string, report: Report): void {
  if (!isQualifiedName(key)) report(path, `${format(key)} is not a valid resource`)
  const isNative = !key.includes('/') || key.includes('kubernetes.io/')
  if (isNative && !['storage', ...IO].includes(key)) report(path, `${format(key)} is not a resource of a claim`)
}

function checkClaimChange(claim: any, old: any, report: Report): void {
  const isBound = old.status?.phase === 'Bound'
  const [spec, oldSpec] = [claim.spec, old.spec]
  const currentClass = old.status?.currentVolumeAttributesClassName

  if (
    !hasSameAmounts(
      immutableRequests(spec.resources?.requests, isBound),
      immutableRequests(oldSpec.resources?.requests, isBound),
    )
  ) {
    report('spec.resources.requests', 'cannot change')
  }
  if (
    !hasSameAmounts(
      omitKeys(spec.resources?.limits, isBound ? IO : []),
      omitKeys(oldSpec.resources?.limits, isBound ? IO : []),
    )
  ) {
    report('spec.resources.limits', 'cannot change')
  }
  const [newRequest, oldRequest] = [spec.resources?.requests?.storage, oldSpec.resources?.requests?.storage]
  const capacity = old.status?.capacity?.storage
  if (compare(newRequest, oldRequest) < 0 && capacity !== undefined && compare(newRequest, capacity) < 0) {
    report('spec.resources.requests.storage', `${newRequest} is less than the capacity, ${capacity}`)
  }
  for (const field of ['accessModes', 'selector', 'volumeMode', 'dataSource', 'dataSourceRef']) {
    if (!isSameField(spec[field], oldSpec[field])) report(`spec.${field}`, 'cannot change')
  }
  if (oldSpec.volumeName && spec.volumeName !== oldSpec.volumeName) report('spec.volumeName', 'can be set once')
  checkClassChange(claim, old, report)
  if ((spec.volumeAttributesClassName ?? null) !== (oldSpec.volumeAttributesClassName ?? null)) {
    if (!isBound) report('spec.volumeAttributesClassName', 'cannot change before the claim is bound')
    if (currentClass !== undefined && !spec.volumeAttributesClassName) {
      report('spec.volumeAttributesClassName', 'cannot be removed while a class is current')
    }
  }
}

/** Compares fields in which `{}` differs from absent, such as a selector. */
const isSameField = (a: unknown, b: unknown): boolean => (a === undefined) === (b === undefined) && isEqualJson(a, b)

const omitKeys = (amounts: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(amounts ?? {}).filter(([key]) => !keys.includes(key)))

const immutableRequests = (requests: Record<string, string> | undefined, isBound: boolean): Record<string, string> =>
  omitKeys(requests, isBound ? ['storage', ...IO] : [])

function checkClassChange(claim: any, old: any, report: Report): void {
  const className = claim.spec.storageClassName
  const oldClassName = old.spec.storageClassName
  const annotation = claim.metadata.annotations?.[BETA_CLASS]
  const oldAnnotation = old.metadata.annotations?.[BETA_CLASS]
  const wasMovedToField = oldAnnotation !== undefined && oldClassName === undefined && className === oldAnnotation
  if (annotation !== oldAnnotation && !(wasMovedToField && annotation === undefined)) {
    if (!isEmpty(annotation) || !isEmpty(oldAnnotation)) report(`metadata.annotations[${BETA_CLASS}]`, 'cannot change')
  }
  if (className === oldClassName) return
  const wasDefaulted = oldClassName === undefined && (oldAnnotation === undefined || oldAnnotation === className)
  if (!wasDefaulted) report('spec.storageClassName', `changed from ${format(oldClassName)} to ${format(className)}`)
}
