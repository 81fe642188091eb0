// Converts a PersistentVolume or an inline volume of a pod to the CSI volume that the agent mounts. Pure.
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
  /** The name of the PV, or of the inline volume in the pod. */
  readonly name: string
  readonly mode: VolumeMode
  readonly isInline: boolean
  readonly readOnly: boolean
  readonly fsType: string
  readonly mountOptions: readonly string[]
  /** The first access mode of the PV, or ReadWriteOnce. */
  readonly accessMode: string
  readonly attributes: Readonly<Record<string, string>>
  readonly stageSecret?: SecretRef
  readonly publishSecret?: SecretRef
  readonly expandSecret?: SecretRef
  /** Undefined for an inline volume. */
  readonly pv?: Readonly<PersistentVolume>
  readonly claim?: Readonly<PersistentVolumeClaim>
}

const MOUNT_OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options'

/** Returns undefined if the PV is not a CSI volume. */
export function csiVolumeOf(
  pv: Readonly<PersistentVolume>,
  claim: Readonly<PersistentVolumeClaim>,
  { isReadOnly }: { readonly isReadOnly: boolean },
): CsiVolume | undefined {
  const { csi, mountOptions, accessModes = [], volumeMode } = pv.spec ?? {}
  if (!csi) return undefined
  const annotation = pv.metadata.annotations?.[MOUNT_OPTIONS_ANNOTATION]
  return {
    name: pv.metadata.name ?? '',
    driver: csi.driver,
    handle: csi.volumeHandle,
    mode: volumeMode === 'Block' ? 'Block' : 'Filesystem',
    isInline: false,
    readOnly: isReadOnly || (csi.readOnly ?? false),
    fsType: csi.fsType ?? '',
    mountOptions: mountOptions ?? (annotation ? annotation.split(',') : []),
    accessMode: accessModes[0] ?? 'ReadWriteOnce',
    attributes: csi.volumeAttributes ?? {},
    ...secretRefAs('stageSecret', csi.nodeStageSecretRef),
    ...secretRefAs('publishSecret', csi.nodePublishSecretRef),
    ...secretRefAs('expandSecret', csi.nodeExpandSecretRef),
    pv,
    claim,
  }
}

/** Returns undefined if the volume is not a CSI volume. */
export function inlineVolumeOf(pod: Readonly<Pod>, { name, csi }: Readonly<Volume>): CsiVolume | undefined {
  if (!csi) return undefined
  const namespace = pod.metadata.namespace ?? ''
  return {
    name,
    driver: csi.driver,
    handle: `csi-${sha256(`${pod.metadata.uid}${name}`)}`,
    mode: 'Filesystem',
    isInline: true,
    readOnly: csi.readOnly ?? false,
    fsType: csi.fsType ?? '',
    mountOptions: [],
    accessMode: 'ReadWriteOnce',
    attributes: csi.volumeAttributes ?? {},
    ...secretRefAs('publishSecret', csi.nodePublishSecretRef && { namespace, name: csi.nodePublishSecretRef.name }),
  }
}

const secretRefAs = <K extends string>(key: K, ref: { namespace?: string; name?: string } | undefined) =>
  (ref?.name && ref.namespace ? { [key]: { namespace: ref.namespace, name: ref.name } } : {}) as Partial<
    Record<K, SecretRef>
  >
