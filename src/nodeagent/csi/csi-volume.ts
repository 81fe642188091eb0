// A CSI volume as the agent uses it, from a PersistentVolume or from an inline volume of a pod. Pure.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Volume } from '../../api/kinds/pod/pod-volumes-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { sha256 } from '../paths.ts'
import type { VolumeIdentity, VolumeMode } from './mount-records.ts'

export interface SecretRef {
  readonly namespace: string
  readonly name: string
}

export interface CsiVolume extends VolumeIdentity {
  /** The PV's name, or the volume's name in the pod. */
  readonly volume: string
  readonly mode: VolumeMode
  readonly isInline: boolean
  readonly readOnly: boolean
  readonly fsType: string
  readonly mountOptions: readonly string[]
  /** The PV's first access mode. */
  readonly accessMode: string
  readonly attributes: Readonly<Record<string, string>>
  readonly stageSecret?: SecretRef
  readonly publishSecret?: SecretRef
  readonly expandSecret?: SecretRef
  /** Absent for an inline volume. */
  readonly pv?: Readonly<PersistentVolume>
  readonly claim?: Readonly<PersistentVolumeClaim>
}

const OLD_MOUNT_OPTIONS = 'volume.beta.kubernetes.io/mount-options'

export function csiVolumeOf(
  pv: Readonly<PersistentVolume>,
  claim: Readonly<PersistentVolumeClaim>,
  { isReadOnly }: { readonly isReadOnly: boolean },
): CsiVolume | undefined {
  const { csi, mountOptions, accessModes = [], volumeMode } = pv.spec ?? {}
  if (!csi) return undefined
  const old = pv.metadata.annotations?.[OLD_MOUNT_OPTIONS]
  return {
    volume: pv.metadata.name ?? '',
    driver: csi.driver,
    handle: csi.volumeHandle,
    mode: volumeMode === 'Block' ? 'Block' : 'Filesystem',
    isInline: false,
    readOnly: isReadOnly || (csi.readOnly ?? false),
    fsType: csi.fsType ?? '',
    mountOptions: mountOptions ?? (old ? old.split(',') : []),
    accessMode: accessModes[0] ?? 'ReadWriteOnce',
    attributes: csi.volumeAttributes ?? {},
    ...refAs('stageSecret', csi.nodeStageSecretRef),
    ...refAs('publishSecret', csi.nodePublishSecretRef),
    ...refAs('expandSecret', csi.nodeExpandSecretRef),
    pv,
    claim,
  }
}

export function inlineVolumeOf(pod: Readonly<Pod>, { name, csi }: Readonly<Volume>): CsiVolume | undefined {
  if (!csi) return undefined
  const namespace = pod.metadata.namespace ?? ''
  return {
    volume: name,
    driver: csi.driver,
    handle: `csi-${sha256(`${pod.metadata.uid}${name}`)}`,
    mode: 'Filesystem',
    isInline: true,
    readOnly: csi.readOnly ?? false,
    fsType: csi.fsType ?? '',
    mountOptions: [],
    accessMode: 'ReadWriteOnce',
    attributes: csi.volumeAttributes ?? {},
    ...refAs('publishSecret', csi.nodePublishSecretRef && { namespace, name: csi.nodePublishSecretRef.name }),
  }
}

const refAs = <K extends string>(key: K, ref: { namespace?: string; name?: string } | undefined) =>
  (ref?.name && ref.namespace ? { [key]: { namespace: ref.namespace, name: ref.name } } : {}) as Partial<
    Record<K, SecretRef>
  >
