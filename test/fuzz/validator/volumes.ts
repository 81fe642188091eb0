// PersistentVolume: one immutable source, a size, and a phase that only controllers set.
import { checkAccessModes } from './claims.ts'
import { type Say, same, show } from './findings.ts'
import { goesUp, isDnsLabel, isDnsSubdomain, isDriverName } from './names.ts'
import { isPositive } from './quantity.ts'
import { checkNodeSelector } from './selectors.ts'

const SOURCES = [
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'hostPath',
  'glusterfs',
  'nfs',
  'rbd',
  'iscsi',
  'cinder',
  'cephfs',
  'fc',
  'flocker',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'local',
  'storageos',
  'csi',
]
const HOST_PATH_TYPES = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
]
const VALIDATED_SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
]

export function checkVolume(volume: any, say: Say, old?: any): void {
  const { spec = {}, status = {} } = volume
  checkCapacity(spec.capacity ?? {}, say)
  checkAccessModes(spec.accessModes ?? [], 'spec.accessModes', say)
  if (!['Retain', 'Delete', 'Recycle'].includes(spec.persistentVolumeReclaimPolicy)) {
    say('spec.persistentVolumeReclaimPolicy', `${show(spec.persistentVolumeReclaimPolicy)} is no policy`)
  }
  if (!['Filesystem', 'Block'].includes(spec.volumeMode)) say('spec.volumeMode', `${show(spec.volumeMode)} is no mode`)
  if (spec.storageClassName && !isDnsSubdomain(spec.storageClassName)) say('spec.storageClassName', 'is no class')
  if (spec.nodeAffinity) checkNodeSelector(spec.nodeAffinity.required, 'spec.nodeAffinity.required', say)
  checkSource(spec, 'spec', say)
  const attributes = spec.volumeAttributesClassName
  if (attributes !== undefined) {
    if (!isDnsSubdomain(attributes)) say('spec.volumeAttributesClassName', `${show(attributes)} is no class`)
    if (!spec.csi) say('spec.csi', 'attributes classes are for CSI volumes')
  }
  if (!old) {
    if (status.phase !== 'Pending') say('status.phase', `a new volume begins Pending, not ${show(status.phase)}`)
    if (status.lastPhaseTransitionTime === undefined) say('status.lastPhaseTransitionTime', 'missing')
    if (!volume.metadata.finalizers?.includes('kubernetes.io/pv-protection')) {
      say('metadata.finalizers', 'the protection is missing')
    }
  } else checkVolumeChange(volume, old, say)
}

function checkCapacity(capacity: Record<string, string>, say: Say): void {
  if (capacity.storage === undefined) say('spec.capacity', 'storage is missing')
  for (const [key, amount] of Object.entries(capacity)) {
    if (!['storage', 'iops', 'throughput'].includes(key)) say('spec.capacity', `${show(key)} is not for volumes`)
    if (!isPositive(amount)) say(`spec.capacity[${key}]`, `${show(amount)} is not above zero`)
  }
}

export function checkSource(spec: any, path: string, say: Say): void {
  const given = SOURCES.filter((source) => spec[source] !== undefined)
  if (given.length !== 1) say(path, `one source is wanted, not ${show(given)}`)
  const { csi, hostPath, local, nfs } = spec
  if (csi) {
    if (!isDriverName(csi.driver)) say(`${path}.csi.driver`, `${show(csi.driver)} is no driver`)
    if (!csi.volumeHandle) say(`${path}.csi.volumeHandle`, 'missing')
    for (const field of VALIDATED_SECRETS) {
      if (!csi[field]) continue
      if (!isDnsSubdomain(csi[field].name ?? '')) say(`${path}.csi.${field}.name`, 'is no secret')
      if (!isDnsLabel(csi[field].namespace ?? '')) say(`${path}.csi.${field}.namespace`, 'is no namespace')
    }
  }
  if (hostPath) {
    if (!hostPath.path || goesUp(hostPath.path)) say(`${path}.hostPath.path`, `${show(hostPath.path)} is no path`)
    if (!HOST_PATH_TYPES.includes(hostPath.type ?? '')) say(`${path}.hostPath.type`, 'is no type')
    if (/^\/+$/.test(hostPath.path) && spec.persistentVolumeReclaimPolicy === 'Recycle')
      say(path, 'recycles a whole node')
  }
  if (local) {
    if (!local.path || goesUp(local.path)) say(`${path}.local.path`, `${show(local.path)} is no path`)
    if (!spec.nodeAffinity) say(`${path}.nodeAffinity`, 'a local volume says on which node')
  }
  if (nfs && (!nfs.server || !nfs.path?.startsWith('/'))) say(`${path}.nfs`, 'needs a server and an absolute path')
}

function checkVolumeChange(volume: any, old: any, say: Say): void {
  const [now, before] = [volume.spec, old.spec]
  const source = (spec: any) =>
    Object.fromEntries(SOURCES.filter((name) => spec[name]).map((name) => [name, spec[name]]))
  const held = source(now)
  if (held.csi?.controllerExpandSecretRef && before.csi && !before.csi.controllerExpandSecretRef) {
    const { controllerExpandSecretRef: _, ...rest } = held.csi
    held.csi = rest // may be added once
  }
  if (!same(held, source(before))) say('spec', 'the source cannot change')
  if (now.volumeMode !== before.volumeMode) say('spec.volumeMode', 'cannot change')
  if (before.nodeAffinity && !same(now.nodeAffinity, before.nodeAffinity) && !hasOldTopologyKeys(before.nodeAffinity)) {
    say('spec.nodeAffinity', 'can be set once')
  }
  if (before.volumeAttributesClassName !== undefined && now.volumeAttributesClassName === undefined) {
    say('spec.volumeAttributesClassName', 'cannot be taken away')
  }
  if (volume.status?.phase !== old.status?.phase && !volume.status?.lastPhaseTransitionTime) {
    say('status.lastPhaseTransitionTime', 'missing after a change of phase')
  }
}

/** Deprecated topology labels may be replaced by the current ones. */
const hasOldTopologyKeys = (affinity: unknown): boolean => /beta\.kubernetes\.io/.test(JSON.stringify(affinity))
