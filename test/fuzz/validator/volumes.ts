// Checks PersistentVolumes.
import { checkAccessModes } from './claims.ts'
import { format, isEqualJson, type Report } from './findings.ts'
import { hasParentSegment, isDnsLabel, isDnsSubdomain, isDriverName } from './names.ts'
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

export function checkVolume(volume: any, report: Report, old?: any): void {
  const { spec = {}, status = {} } = volume
  checkCapacity(spec.capacity ?? {}, report)
  checkAccessModes(spec.accessModes ?? [], 'spec.accessModes', report)
  if (!['Retain', 'Delete', 'Recycle'].includes(spec.persistentVolumeReclaimPolicy)) {
    report('spec.persistentVolumeReclaimPolicy', `${format(spec.persistentVolumeReclaimPolicy)} is not a valid policy`)
  }
  if (!['Filesystem', 'Block'].includes(spec.volumeMode))
    report('spec.volumeMode', `${format(spec.volumeMode)} is not a valid mode`)
  if (spec.storageClassName && !isDnsSubdomain(spec.storageClassName))
    report('spec.storageClassName', 'is not a valid class')
  if (spec.nodeAffinity) checkNodeSelector(spec.nodeAffinity.required, 'spec.nodeAffinity.required', report)
  checkSource(spec, 'spec', report)
  const attributesClassName = spec.volumeAttributesClassName
  if (attributesClassName !== undefined) {
    if (!isDnsSubdomain(attributesClassName))
      report('spec.volumeAttributesClassName', `${format(attributesClassName)} is not a valid class`)
    if (!spec.csi) report('spec.csi', 'required with an attributes class')
  }
  if (!old) {
    if (status.phase !== 'Pending') report('status.phase', `a new volume must be Pending, not ${format(status.phase)}`)
    if (status.lastPhaseTransitionTime === undefined) report('status.lastPhaseTransitionTime', 'missing')
    if (!volume.metadata.finalizers?.includes('kubernetes.io/pv-protection')) {
      report('metadata.finalizers', 'the protection finalizer is missing')
    }
  } else checkVolumeChange(volume, old, report)
}

function checkCapacity(capacity: Record<string, string>, report: Report): void {
  if (capacity.storage === undefined) report('spec.capacity', 'storage is missing')
  for (const [key, amount] of Object.entries(capacity)) {
    if (!['storage', 'iops', 'throughput'].includes(key)) report('spec.capacity', `${format(key)} is not for volumes`)
    if (!isPositive(amount)) report(`spec.capacity[${key}]`, `${format(amount)} is not above zero`)
  }
}

export function checkSource(spec: any, path: string, report: Report): void {
  const sources = SOURCES.filter((source) => spec[source] !== undefined)
  if (sources.length !== 1) report(path, `exactly one source is required, not ${format(sources)}`)
  const { csi, hostPath, local, nfs } = spec
  if (csi) {
    if (!isDriverName(csi.driver)) report(`${path}.csi.driver`, `${format(csi.driver)} is not a valid driver`)
    if (!csi.volumeHandle) report(`${path}.csi.volumeHandle`, 'missing')
    for (const field of VALIDATED_SECRETS) {
      if (!csi[field]) continue
      if (!isDnsSubdomain(csi[field].name ?? '')) report(`${path}.csi.${field}.name`, 'is not a valid secret')
      if (!isDnsLabel(csi[field].namespace ?? '')) report(`${path}.csi.${field}.namespace`, 'is not a valid namespace')
    }
  }
  if (hostPath) {
    if (!hostPath.path || hasParentSegment(hostPath.path))
      report(`${path}.hostPath.path`, `${format(hostPath.path)} is not a valid path`)
    if (!HOST_PATH_TYPES.includes(hostPath.type ?? '')) report(`${path}.hostPath.type`, 'is not a valid type')
    if (/^\/+$/.test(hostPath.path) && spec.persistentVolumeReclaimPolicy === 'Recycle')
      report(path, 'cannot recycle the root directory')
  }
  if (local) {
    if (!local.path || hasParentSegment(local.path))
      report(`${path}.local.path`, `${format(local.path)} is not a valid path`)
    if (!spec.nodeAffinity) report(`${path}.nodeAffinity`, 'required for local volumes')
  }
  if (nfs && (!nfs.server || !nfs.path?.startsWith('/'))) report(`${path}.nfs`, 'needs a server and an absolute path')
}

function checkVolumeChange(volume: any, old: any, report: Report): void {
  const [newSpec, oldSpec] = [volume.spec, old.spec]
  const source = (spec: any) =>
    Object.fromEntries(SOURCES.filter((name) => spec[name]).map((name) => [name, spec[name]]))
  const newSource = source(newSpec)
  if (newSource.csi?.controllerExpandSecretRef && oldSpec.csi && !oldSpec.csi.controllerExpandSecretRef) {
    const { controllerExpandSecretRef: _, ...csi } = newSource.csi
    newSource.csi = csi // this reference can be added once
  }
  if (!isEqualJson(newSource, source(oldSpec))) report('spec', 'the source cannot change')
  if (newSpec.volumeMode !== oldSpec.volumeMode) report('spec.volumeMode', 'cannot change')
  if (
    oldSpec.nodeAffinity &&
    !isEqualJson(newSpec.nodeAffinity, oldSpec.nodeAffinity) &&
    !hasOldTopologyKeys(oldSpec.nodeAffinity)
  ) {
    report('spec.nodeAffinity', 'can be set once')
  }
  if (oldSpec.volumeAttributesClassName !== undefined && newSpec.volumeAttributesClassName === undefined) {
    report('spec.volumeAttributesClassName', 'cannot be unset')
  }
  if (volume.status?.phase !== old.status?.phase && !volume.status?.lastPhaseTransitionTime) {
    report('status.lastPhaseTransitionTime', 'missing after a change of phase')
  }
}

/** Whether the affinity has deprecated labels. Only then may it change. */
const hasOldTopologyKeys = (affinity: unknown): boolean => /beta\.kubernetes\.io/.test(JSON.stringify(affinity))
