// Reads the API objects that refer to a driver's storage: PVs, claims, intents, attachments, snapshot contents and pods, and
// also classes and CSINodes.
// Claims and intents are read before PVs: a provisioner saves the PV before it removes the intent, so a volume whose intent
// has ended has a PV in the later list.
import type { Kind, KubeObject, Stored } from '../../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import type { Lease } from '../../../api/kinds/lease/lease-schema.ts'
import { operationKind } from '../../../api/kinds/operation/operation.ts'
import type { Operation } from '../../../api/kinds/operation/operation-schema.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { isForbidden, isNotServed } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import { listAll } from '../../../client/list-all.ts'
import {
  type VolumeSnapshotContent,
  volumeSnapshotContentKind,
} from '../../../controllers/provisioning/csi/snapshot-kinds.ts'

type Objects<T extends KubeObject> = readonly Readonly<Stored<T>>[]

export interface Cluster {
  readonly claims: Objects<PersistentVolumeClaim>
  /** The leases in which provisioners record their intents. */
  readonly leases: Objects<Lease>
  readonly operations: Objects<Operation>
  readonly pods: Objects<Pod>
  /** Undefined if the server does not serve them or the user may not list them. */
  readonly contents: Objects<VolumeSnapshotContent> | undefined
  readonly volumes: Objects<PersistentVolume>
  readonly attachments: Objects<VolumeAttachment>
  readonly classes: Objects<StorageClass>
  readonly csiNodes: Objects<CSINode>
  /** The rules that the user lacks to read these lists, such as `list pods in all namespaces`. */
  readonly missingRules: readonly string[]
  /** The missing rules without which volumes that are in use or being provisioned cannot be recognized. */
  readonly missingOwnerRules: readonly string[]
}

/** Throws an error that names the rule if the user may not list PVs. */
export async function readCluster(client: Pick<Client, 'list'>, signal: AbortSignal): Promise<Cluster> {
  const missingRules: string[] = []
  const missingOwnerRules: string[] = []
  async function read<T extends KubeObject>(kind: Kind<T>, isOwner = false): Promise<Objects<T> | undefined> {
    try {
      return await listAll(client, kind, { signal })
    } catch (error) {
      if (isNotServed(error)) return undefined
      if (!isForbidden(error)) throw error
      const resource = kind.group ? `${kind.plural}.${kind.group}` : kind.plural
      const rule = `list ${resource}${kind.namespaced ? ' in all namespaces' : ''}`
      missingRules.push(rule)
      if (isOwner) missingOwnerRules.push(rule)
      return undefined
    }
  }
  const [claims, leases, operations, pods, contents] = await Promise.all([
    read(persistentVolumeClaimKind, true),
    read(leaseKind, true),
    read(operationKind, true),
    read(podKind, true),
    read(volumeSnapshotContentKind, true),
  ])
  const [volumes, attachments, classes, csiNodes] = await Promise.all([
    read(persistentVolumeKind),
    read(volumeAttachmentKind, true),
    read(storageClassKind),
    read(csiNodeKind),
  ])
  if (!volumes) throw new Error('PVs cannot be read: you need permission to list persistentvolumes')
  return {
    claims: claims ?? [],
    leases: leases ?? [],
    operations: operations ?? [],
    pods: pods ?? [],
    contents,
    volumes,
    attachments: attachments ?? [],
    classes: classes ?? [],
    csiNodes: csiNodes ?? [],
    missingRules,
    missingOwnerRules,
  }
}
