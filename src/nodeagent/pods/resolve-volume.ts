// Resolves a volume of a pod to a CSI volume, a hostPath, an emptyDir or files from the API. A claim and its PV must be bound
// to each other. Throws a VolumeError if the volume must wait for another component or cannot be mounted.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { HostPathVolumeSource } from '../../api/kinds/volume/volume-sources-schema.ts'
import { isReachableFrom, type NodeIdentity } from '../../volumes/node-affinity.ts'
import { type CsiVolume, csiVolumeOf, inlineVolumeOf } from '../csi/csi-volume.ts'
import { mountError, waitingError } from '../volume-error.ts'
import type { ObjectReader } from '../volume-objects.ts'
import { listProjections } from './projected-files.ts'
import { sourceOf, type UsedVolume } from './used-volumes.ts'

export type ResolvedVolume =
  | { readonly is: 'csi'; readonly volume: CsiVolume }
  | { readonly is: 'hostPath'; readonly source: Readonly<HostPathVolumeSource>; readonly readOnly: boolean }
  | { readonly is: 'emptyDir'; readonly inMemory: boolean; readonly sizeLimit?: string; readonly mode?: number }
  | { readonly is: 'projected'; readonly projections: NonNullable<ReturnType<typeof listProjections>> }

export interface ResolveDeps {
  readonly claims: ObjectReader<PersistentVolumeClaim>
  readonly volumes: ObjectReader<PersistentVolume>
  node(): NodeIdentity
  /** Whether a mount record of the volume exists for the pod. */
  hasRecord(uid: string, volume: string): boolean
}

export function resolveVolume(pod: Readonly<Stored<Pod>>, usedVolume: UsedVolume, deps: ResolveDeps): ResolvedVolume {
  const { volume, name } = usedVolume
  if (volume.persistentVolumeClaim) {
    const { claimName, readOnly = false } = volume.persistentVolumeClaim
    return resolveClaim(pod, usedVolume, { claimName, readOnly }, deps)
  }
  if (volume.ephemeral) {
    return resolveClaim(pod, usedVolume, { claimName: `${pod.metadata.name}-${name}`, readOnly: false }, deps)
  }
  if (volume.csi) return { is: 'csi', volume: inlineVolumeOf(pod, volume)! }
  if (volume.hostPath) return { is: 'hostPath', source: volume.hostPath, readOnly: false }
  const projections = listProjections(volume)
  if (projections) return { is: 'projected', projections }
  const source = sourceOf(volume)
  if (source !== 'emptyDir') {
    throw mountError(
      `MountVolume.SetUp failed for volume "${name}" : this node agent does not support ${source} volumes; ` +
        'use a claim, an emptyDir, a hostPath or a projected volume',
    )
  }
  const { medium, sizeLimit, mode } = volume.emptyDir ?? {}
  return {
    is: 'emptyDir',
    inMemory: medium === 'Memory',
    ...(sizeLimit === undefined ? {} : { sizeLimit: String(sizeLimit) }),
    ...(mode === undefined ? {} : { mode }),
  }
}

function resolveClaim(
  pod: Readonly<Stored<Pod>>,
  usedVolume: UsedVolume,
  { claimName, readOnly }: { readonly claimName: string; readonly readOnly: boolean },
  deps: ResolveDeps,
): ResolvedVolume {
  const claimRef = { namespace: pod.metadata.namespace ?? '', name: claimName }
  const claim = deps.claims.get(claimRef)
  const waitsFor = { kind: 'PersistentVolumeClaim', ...claimRef }
  if (!claim) throw waitingError(`persistentvolumeclaim "${claimName}" not found`, waitsFor)
  if (usedVolume.volume.ephemeral && !claim.metadata.ownerReferences?.some(({ uid }) => uid === pod.metadata.uid)) {
    throw mountError(`PVC ${pod.metadata.namespace}/${claimName} was not created for pod ${pod.metadata.name}`)
  }
  const volumeName = claim.spec?.volumeName
  const isInUse = volumeName !== undefined && deps.hasRecord(pod.metadata.uid, volumeName)
  if (claim.metadata.deletionTimestamp && !isInUse) {
    throw waitingError(`persistentvolumeclaim "${claimName}" is being deleted`, waitsFor)
  }
  if (!volumeName || claim.status?.phase !== 'Bound') {
    throw waitingError(`persistentvolumeclaim "${claimName}" is not bound to a volume yet`, waitsFor)
  }
  const pv = deps.volumes.get({ name: volumeName })
  if (!pv?.spec || pv.spec.claimRef?.uid !== claim.metadata.uid) {
    throw waitingError(`volume "${volumeName}" is not bound to persistentvolumeclaim "${claimName}" yet`, {
      kind: 'PersistentVolume',
      name: volumeName,
    })
  }
  checkMode(pv, usedVolume)

  const csi = csiVolumeOf(pv, claim, { isReadOnly: readOnly })
  if (csi) return { is: 'csi', volume: csi }
  const { hostPath, local } = pv.spec
  const path = hostPath ?? (local ? { path: local.path, type: '' as const } : undefined)
  if (!path) {
    throw mountError(
      `MountVolume.SetUp failed for volume "${volumeName}" : this node agent supports only CSI, hostPath and local volumes`,
    )
  }
  if (!isReachableFrom(pv, deps.node())) {
    throw mountError(`MountVolume.NodeAffinity check failed for volume "${volumeName}" : no matching NodeSelectorTerms`)
  }
  return { is: 'hostPath', source: path, readOnly }
}

function checkMode({ metadata, spec }: Readonly<PersistentVolume>, { name, isMounted, isDevice }: UsedVolume): void {
  const mode = spec?.volumeMode === 'Block' ? 'Block' : 'Filesystem'
  if (mode === 'Block' && isMounted) {
    throw mountError(
      `volume ${name} has volumeMode Block, but is specified in volumeMounts (volume "${metadata.name}")`,
    )
  }
  if (mode === 'Filesystem' && isDevice) {
    throw mountError(
      `volume ${name} has volumeMode Filesystem, but is specified in volumeDevices (volume "${metadata.name}")`,
    )
  }
}
