// CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment.

import { checkAccessModes } from './claims.ts'
import { mapBytes, repeated, type Say, same, show } from './findings.ts'
import { isDnsSubdomain, isDriverName, isQualifiedName } from './names.ts'
import { isNegative } from './quantity.ts'
import { checkLabelSelector } from './selectors.ts'
import { checkSource } from './volumes.ts'

const TOKEN_SECONDS_MAX = 2 ** 32

export function checkDriver({ metadata, spec = {} }: any, say: Say, old?: any): void {
  for (const field of [
    'attachRequired',
    'podInfoOnMount',
    'storageCapacity',
    'requiresRepublish',
    'seLinuxMount',
    'preventPodSchedulingIfMissing',
  ]) {
    if (typeof spec[field] !== 'boolean') say(`spec.${field}`, 'the default is missing')
  }
  if (!['ReadWriteOnceWithFSType', 'File', 'None'].includes(spec.fsGroupPolicy)) {
    say('spec.fsGroupPolicy', `${show(spec.fsGroupPolicy)} is no policy`)
  }
  const modes: string[] = spec.volumeLifecycleModes ?? []
  if (modes.length === 0) say('spec.volumeLifecycleModes', 'the default is missing')
  for (const mode of modes) {
    if (!['Persistent', 'Ephemeral'].includes(mode)) say('spec.volumeLifecycleModes', `${show(mode)} is no mode`)
  }
  const tokens: any[] = spec.tokenRequests ?? []
  if (repeated(tokens.map(({ audience }) => audience)).length > 0) say('spec.tokenRequests', 'an audience twice')
  for (const { expirationSeconds } of tokens) {
    if (expirationSeconds < 600 || expirationSeconds > TOKEN_SECONDS_MAX) say('spec.tokenRequests', 'out of range')
  }
  if (spec.nodeAllocatableUpdatePeriodSeconds < 10) say('spec.nodeAllocatableUpdatePeriodSeconds', 'below 10')
  if (spec.serviceAccountTokenInSecrets !== undefined && tokens.length === 0) {
    say('spec.serviceAccountTokenInSecrets', 'means nothing without tokenRequests')
  }
  if (!old) return
  for (const field of ['attachRequired', 'volumeLifecycleModes']) {
    if (!same(spec[field], old.spec[field])) say(`spec.${field}`, 'cannot change')
  }
  const grew = metadata.generation > old.metadata.generation
  if (!same(spec, old.spec) && !grew) say('metadata.generation', 'the spec changed and the count did not')
}

export function checkCsiNode({ spec = {}, status = {} }: any, say: Say, old?: any): void {
  const drivers: any[] = spec.drivers ?? []
  if (repeated(drivers.map(({ name }) => name)).length > 0) say('spec.drivers', 'a driver twice')
  for (const [i, driver] of drivers.entries()) {
    const at = `spec.drivers[${i}]`
    if (!isDriverName(driver.name)) say(`${at}.name`, `${show(driver.name)} is no driver`)
    if (!driver.nodeID || Buffer.byteLength(driver.nodeID) > 256) say(`${at}.nodeID`, 'missing or too long')
    if (driver.allocatable?.count < 0) say(`${at}.allocatable.count`, 'negative')
    const keys: string[] = driver.topologyKeys ?? []
    if (repeated(keys).length > 0) say(`${at}.topologyKeys`, 'a key twice')
    for (const key of keys) if (!isQualifiedName(key)) say(`${at}.topologyKeys`, `${show(key)} is no label key`)
    const before = old?.spec.drivers?.find(({ name }: any) => name === driver.name)
    if (before && (before.nodeID !== driver.nodeID || !same(before.topologyKeys, driver.topologyKeys))) {
      say(at, 'a registered driver cannot change')
    }
  }
  if (!old && Object.keys(status).length > 0) say('status', 'is written by the node, later')
  const health: any[] = status.storageHealth ?? []
  if (repeated(health.map(({ name }) => name)).length > 0) say('status.storageHealth', 'a driver twice')
  for (const { name, healthConditions = [] } of health) {
    if (!isDriverName(name)) say('status.storageHealth', `${show(name)} is no driver`)
    if (healthConditions.length > 16) say('status.storageHealth', 'too many conditions')
    for (const { status: word, reason, message = '' } of healthConditions) {
      if (!['StorageUnreachable', 'StorageDegraded'].includes(word))
        say('status.storageHealth', `${show(word)} means nothing`)
      if (!/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason) || reason.length > 256)
        say('status.storageHealth', 'reason')
      if (Buffer.byteLength(message) > 1024) say('status.storageHealth', 'message too long')
    }
  }
}

export function checkStorageCapacity(capacity: any, say: Say, old?: any): void {
  if (!isDnsSubdomain(capacity.storageClassName ?? ''))
    say('storageClassName', `${show(capacity.storageClassName)} is no class`)
  checkLabelSelector(capacity.nodeTopology, 'nodeTopology', say)
  if (isNegative(capacity.capacity)) say('capacity', 'negative')
  if (!old) return
  if (capacity.storageClassName !== old.storageClassName) say('storageClassName', 'cannot change')
  const unset = (capacity.nodeTopology === undefined) !== (old.nodeTopology === undefined)
  if (unset || !same(capacity.nodeTopology, old.nodeTopology)) say('nodeTopology', 'cannot change')
}

export function checkAttachment({ spec = {}, status = {} }: any, say: Say, old?: any): void {
  if (!isDriverName(spec.attacher ?? '')) say('spec.attacher', `${show(spec.attacher)} is no driver`)
  if (!isDnsSubdomain(spec.nodeName ?? '')) say('spec.nodeName', `${show(spec.nodeName)} is no node`)
  const { persistentVolumeName: volume, inlineVolumeSpec: inline } = spec.source ?? {}
  if ((volume === undefined) === (inline === undefined)) say('spec.source', 'exactly one is wanted')
  if (volume !== undefined && !isDnsSubdomain(volume))
    say('spec.source.persistentVolumeName', `${show(volume)} is no volume`)
  if (inline) checkInline(inline, say)
  if (typeof status.attached !== 'boolean') say('status.attached', 'missing')
  if (!old && (status.attached || status.attachError || status.detachError))
    say('status', 'is written by the attacher, later')
  if (mapBytes(status.attachmentMetadata) > 256 * 1024) say('status.attachmentMetadata', 'too large')
  for (const field of ['attachError', 'detachError']) {
    if (Buffer.byteLength(status[field]?.message ?? '') > 1024) say(`status.${field}.message`, 'too long')
    if (status[field]?.errorCode < 0) say(`status.${field}.errorCode`, 'negative')
  }
  if (old && !same(spec, old.spec)) say('spec', 'cannot change')
}

function checkInline(inline: any, say: Say): void {
  const at = 'spec.source.inlineVolumeSpec'
  if (!inline.csi) say(`${at}.csi`, 'missing')
  for (const field of ['claimRef', 'capacity', 'nodeAffinity', 'storageClassName']) {
    if (inline[field] !== undefined) say(`${at}.${field}`, 'is not for inline volumes')
  }
  checkAccessModes(inline.accessModes ?? [], `${at}.accessModes`, say)
  checkSource(inline, at, say)
}
