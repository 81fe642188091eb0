// Checks the CSI kinds: CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment.

import { checkAccessModes } from './claims.ts'
import { duplicatesIn, format, isEqualJson, mapBytes, type Report } from './findings.ts'
import { isDnsSubdomain, isDriverName, isQualifiedName } from './names.ts'
import { isNegative } from './quantity.ts'
import { checkLabelSelector } from './selectors.ts'
import { checkSource } from './volumes.ts'

const TOKEN_SECONDS_MAX = 2 ** 32

export function checkDriver({ metadata, spec = {} }: any, report: Report, old?: any): void {
  for (const field of [
    'attachRequired',
    'podInfoOnMount',
    'storageCapacity',
    'requiresRepublish',
    'seLinuxMount',
    'preventPodSchedulingIfMissing',
  ]) {
    if (typeof spec[field] !== 'boolean') report(`spec.${field}`, 'the default is missing')
  }
  if (!['ReadWriteOnceWithFSType', 'File', 'None'].includes(spec.fsGroupPolicy)) {
    report('spec.fsGroupPolicy', `${format(spec.fsGroupPolicy)} is not a valid policy`)
  }
  const modes: string[] = spec.volumeLifecycleModes ?? []
  if (modes.length === 0) report('spec.volumeLifecycleModes', 'the default is missing')
  for (const mode of modes) {
    if (!['Persistent', 'Ephemeral'].includes(mode))
      report('spec.volumeLifecycleModes', `${format(mode)} is not a valid mode`)
  }
  const tokens: any[] = spec.tokenRequests ?? []
  if (duplicatesIn(tokens.map(({ audience }) => audience)).length > 0)
    report('spec.tokenRequests', 'duplicate audience')
  for (const { expirationSeconds } of tokens) {
    if (expirationSeconds < 600 || expirationSeconds > TOKEN_SECONDS_MAX) report('spec.tokenRequests', 'out of range')
  }
  if (spec.nodeAllocatableUpdatePeriodSeconds < 10) report('spec.nodeAllocatableUpdatePeriodSeconds', 'below 10')
  if (spec.serviceAccountTokenInSecrets !== undefined && tokens.length === 0) {
    report('spec.serviceAccountTokenInSecrets', 'is not allowed without tokenRequests')
  }
  if (!old) return
  for (const field of ['attachRequired', 'volumeLifecycleModes']) {
    if (!isEqualJson(spec[field], old.spec[field])) report(`spec.${field}`, 'cannot change')
  }
  const hasNewGeneration = metadata.generation > old.metadata.generation
  if (!isEqualJson(spec, old.spec) && !hasNewGeneration)
    report('metadata.generation', 'did not increase although the spec changed')
}

export function checkCsiNode({ spec = {}, status = {} }: any, report: Report, old?: any): void {
  const drivers: any[] = spec.drivers ?? []
  if (duplicatesIn(drivers.map(({ name }) => name)).length > 0) report('spec.drivers', 'duplicate driver')
  for (const [i, driver] of drivers.entries()) {
    const fieldPath = `spec.drivers[${i}]`
    if (!isDriverName(driver.name)) report(`${fieldPath}.name`, `${format(driver.name)} is not a valid driver`)
    if (!driver.nodeID || Buffer.byteLength(driver.nodeID) > 256) report(`${fieldPath}.nodeID`, 'missing or too long')
    if (driver.allocatable?.count < 0) report(`${fieldPath}.allocatable.count`, 'negative')
    const keys: string[] = driver.topologyKeys ?? []
    if (duplicatesIn(keys).length > 0) report(`${fieldPath}.topologyKeys`, 'duplicate key')
    for (const key of keys)
      if (!isQualifiedName(key)) report(`${fieldPath}.topologyKeys`, `${format(key)} is not a valid label key`)
    const oldDriver = old?.spec.drivers?.find(({ name }: any) => name === driver.name)
    if (
      oldDriver &&
      (oldDriver.nodeID !== driver.nodeID || !isEqualJson(oldDriver.topologyKeys, driver.topologyKeys))
    ) {
      report(fieldPath, 'a registered driver cannot change')
    }
  }
  if (!old && Object.keys(status).length > 0) report('status', 'must be empty on create')
  const health: any[] = status.storageHealth ?? []
  if (duplicatesIn(health.map(({ name }) => name)).length > 0) report('status.storageHealth', 'duplicate driver')
  for (const { name, healthConditions = [] } of health) {
    if (!isDriverName(name)) report('status.storageHealth', `${format(name)} is not a valid driver`)
    if (healthConditions.length > 16) report('status.storageHealth', 'too many conditions')
    for (const { status: healthStatus, reason, message = '' } of healthConditions) {
      if (!['StorageUnreachable', 'StorageDegraded'].includes(healthStatus))
        report('status.storageHealth', `${format(healthStatus)} is not a valid status`)
      if (!/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason) || reason.length > 256)
        report('status.storageHealth', 'invalid reason')
      if (Buffer.byteLength(message) > 1024) report('status.storageHealth', 'message too long')
    }
  }
}

export function checkStorageCapacity(capacity: any, report: Report, old?: any): void {
  if (!isDnsSubdomain(capacity.storageClassName ?? ''))
    report('storageClassName', `${format(capacity.storageClassName)} is not a valid class`)
  checkLabelSelector(capacity.nodeTopology, 'nodeTopology', report)
  if (isNegative(capacity.capacity)) report('capacity', 'negative')
  if (!old) return
  if (capacity.storageClassName !== old.storageClassName) report('storageClassName', 'cannot change')
  const isPresenceChanged = (capacity.nodeTopology === undefined) !== (old.nodeTopology === undefined)
  if (isPresenceChanged || !isEqualJson(capacity.nodeTopology, old.nodeTopology))
    report('nodeTopology', 'cannot change')
}

export function checkAttachment({ spec = {}, status = {} }: any, report: Report, old?: any): void {
  if (!isDriverName(spec.attacher ?? '')) report('spec.attacher', `${format(spec.attacher)} is not a valid driver`)
  if (!isDnsSubdomain(spec.nodeName ?? '')) report('spec.nodeName', `${format(spec.nodeName)} is not a valid node`)
  const { persistentVolumeName: volume, inlineVolumeSpec: inline } = spec.source ?? {}
  if ((volume === undefined) === (inline === undefined)) report('spec.source', 'exactly one is required')
  if (volume !== undefined && !isDnsSubdomain(volume))
    report('spec.source.persistentVolumeName', `${format(volume)} is not a valid volume`)
  if (inline) checkInline(inline, report)
  if (typeof status.attached !== 'boolean') report('status.attached', 'missing')
  if (!old && (status.attached || status.attachError || status.detachError)) report('status', 'must be empty on create')
  if (mapBytes(status.attachmentMetadata) > 256 * 1024) report('status.attachmentMetadata', 'too large')
  for (const field of ['attachError', 'detachError']) {
    if (Buffer.byteLength(status[field]?.message ?? '') > 1024) report(`status.${field}.message`, 'too long')
    if (status[field]?.errorCode < 0) report(`status.${field}.errorCode`, 'negative')
  }
  if (old && !isEqualJson(spec, old.spec)) report('spec', 'cannot change')
}

function checkInline(inline: any, report: Report): void {
  const fieldPath = 'spec.source.inlineVolumeSpec'
  if (!inline.csi) report(`${fieldPath}.csi`, 'missing')
  for (const field of ['claimRef', 'capacity', 'nodeAffinity', 'storageClassName']) {
    if (inline[field] !== undefined) report(`${fieldPath}.${field}`, 'is not allowed for inline volumes')
  }
  checkAccessModes(inline.accessModes ?? [], `${fieldPath}.accessModes`, report)
  checkSource(inline, fieldPath, report)
}
