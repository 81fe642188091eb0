// Rejects nodes on which the pod would exceed the volume limit that CSINode reports for a driver. Also rejects nodes on which a
// driver of its volumes is not registered: the node could not mount them. Counts each volume once: volumes
// of pods on the node, including assumed pods; volumes that are still attached although no pod uses them; and volumes that are
// being provisioned for the node, whose pods another process may have assumed there.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import { annotationOf, claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { keyOfObject, type ObjectKey } from '../../../client/index.ts'
import { claimKeyOf } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { QueueingHint } from '../../framework/cluster-events.ts'
import type { Plugin, PluginHandle } from '../../framework/plugin.ts'
import { type Reason, type RejectionDetail, SKIP, unresolvable, unschedulable } from '../../framework/status.ts'
import { getOrCreate } from '../../get-or-create.ts'
import {
  ANY_NODE,
  claimChanged,
  driversChanged,
  hintForNode,
  nodeChanged,
  podRemovedFromNode,
} from '../shared-hints.ts'

const LIMIT_EXCEEDED: Reason = { type: 'TooManyVolumes', message: 'node(s) exceed max volume count' }
const TOO_MANY_VOLUMES = unschedulable(LIMIT_EXCEEDED)
/** The volumes of the pod alone exceed the limit. */
const TOO_MANY_OWN_VOLUMES = unresolvable(LIMIT_EXCEEDED)
const driverMissing = (driver: string): Reason => ({
  type: 'DriverMissing',
  subject: driver,
  message: `${driver} CSI driver is not installed on the node`,
})

interface State {
  readonly claimsByDriver: ReadonlyMap<string, readonly ObjectKey[]>
  /** Drivers that must be installed on the node. */
  readonly requiredDrivers: ReadonlySet<string>
}

interface AttachedVolumes {
  readonly podsVersion: number
  /** The volumes by driver. A volume is identified by its claim, or by its own name if it has no claim. */
  readonly volumesByDriver: ReadonlyMap<string, ReadonlySet<string>>
}

const BY_NODE = 'scheduler/node'
const BY_SELECTED_NODE = 'scheduler/selected-node-of-unbound-claim'
const BY_DRIVER = 'scheduler/registered-driver'
/** Returns the node on which a volume is being provisioned for the claim. */
function selectedNodeOf(claim: Readonly<PersistentVolumeClaim> | undefined): string[] {
  const node = claim && !claim.spec?.volumeName ? annotationOf(claim, SELECTED_NODE) : undefined
  return node && !claim?.metadata.deletionTimestamp ? [node] : []
}
const driversOf = (csiNode: Readonly<CSINode> | undefined): string[] =>
  csiNode?.spec.drivers.map(({ name }) => name) ?? []
const nodeNamesOf = ({ spec }: Readonly<VolumeAttachment>): string[] => [spec.nodeName]

export function createNodeVolumeLimits({ caches, cluster }: PluginHandle): Plugin<State> {
  const { attachments, csiNodes, drivers } = caches
  attachments.addIndex(BY_NODE, nodeNamesOf)
  caches.claims.addIndex(BY_SELECTED_NODE, selectedNodeOf)
  csiNodes.addIndex(BY_DRIVER, driversOf)
  const volumesByNode = new WeakMap<NodeInfo, AttachedVolumes>()

  function driverOf(claimKey: ObjectKey): string | undefined {
    const claim = caches.claims.get(claimKey)
    if (!claim) return undefined
    const volume = claim.spec?.volumeName ? caches.volumes.get(claim.spec.volumeName) : undefined
    return volume ? volume.spec?.csi?.driver : caches.classes.get(claimClassName(claim))?.provisioner
  }

  /** Whether the driver must run on the pod's node: it is a known CSI driver, or one of the claims has a CSI volume. */
  const isNodeDriver = (driver: string, claimKeys: readonly ObjectKey[]): boolean =>
    drivers.get(driver) !== undefined ||
    csiNodes.byIndex(BY_DRIVER, driver).length > 0 ||
    claimKeys.some((key) => caches.volumes.get(caches.claims.get(key)?.spec?.volumeName ?? '')?.spec?.csi !== undefined)

  /** Counts the volumes on the node without the pod: volumes that are being provisioned there for the pod itself do not count. */
  function countOnNode(node: NodeInfo, driver: string, claims: readonly ObjectKey[]) {
    const volumes = volumesOnNode(node).get(driver)
    const provisioningKeys = caches.claims
      .byIndex(BY_SELECTED_NODE, node.name)
      .map(keyOfObject)
      .filter((key) => !volumes?.has(key) && !claims.includes(key) && driverOf(key) === driver)
    const newCount = claims.filter((key) => !volumes?.has(key)).length
    return { used: (volumes?.size ?? 0) + provisioningKeys.length, provisioning: provisioningKeys.length, newCount }
  }

  function claimsByDriver({ claims }: PodInfo): Map<string, ObjectKey[]> {
    const keysByDriver = new Map<string, ObjectKey[]>()
    for (const { key } of claims) {
      const driver = driverOf(key)
      if (driver !== undefined) getOrCreate(keysByDriver, driver, () => []).push(key)
    }
    return keysByDriver
  }

  function volumesOnNode(node: NodeInfo): AttachedVolumes['volumesByDriver'] {
    const cachedVolumes = volumesByNode.get(node)
    if (cachedVolumes?.podsVersion === node.podsVersion) return cachedVolumes.volumesByDriver
    const volumesByDriver = new Map<string, Set<string>>()
    const add = (driver: string | undefined, volume: string) => {
      if (driver !== undefined) getOrCreate(volumesByDriver, driver, () => new Set()).add(volume)
    }
    for (const { claims } of node.pods.values()) for (const { key } of claims) add(driverOf(key), key)
    const countedAttachments = node.ignoresUnusedAttachments ? [] : attachments.byIndex(BY_NODE, node.name)
    for (const { spec } of countedAttachments) {
      const name = spec.source.persistentVolumeName
      const volume = name === undefined ? undefined : caches.volumes.get(name)
      if (volume) add(spec.attacher, claimKeyOf(volume) ?? `volume ${name}`)
    }
    volumesByNode.set(node, { podsVersion: node.podsVersion, volumesByDriver })
    return volumesByDriver
  }

  /** Drops the cached volumes of a node. Not needed for changes to its pods, which podsVersion detects. */
  function invalidate(node: NodeInfo | undefined): void {
    if (node) volumesByNode.delete(node)
  }

  return {
    name: 'NodeVolumeLimits',
    events: [
      nodeChanged,
      podRemovedFromNode,
      attachmentDeleted,
      driversChanged,
      claimChanged,
      requirementDropped((pod) => [...claimsByDriver(pod).keys()]),
      provisioningEnded,
    ],
    preFilter(pod) {
      const keysByDriver = claimsByDriver(pod)
      if (keysByDriver.size === 0) return SKIP
      const requiredDrivers = [...keysByDriver].filter(([name, keys]) => isNodeDriver(name, keys)).map(([name]) => name)
      return { code: 'Success', state: { claimsByDriver: keysByDriver, requiredDrivers: new Set(requiredDrivers) } }
    },
    filter(state, node) {
      const installedDrivers = csiNodes.get(node.name)?.spec.drivers
      for (const [driver, claims] of state.claimsByDriver) {
        const csiNodeDriver = installedDrivers?.find(({ name }) => name === driver)
        if (!csiNodeDriver && state.requiredDrivers.has(driver)) return unresolvable(driverMissing(driver))
        const max = csiNodeDriver?.allocatable?.count
        if (max === undefined) continue
        const { used, newCount } = countOnNode(node, driver, claims)
        if (newCount === 0 || used + newCount <= max) continue
        return claims.length > max ? TOO_MANY_OWN_VOLUMES : TOO_MANY_VOLUMES
      }
      return undefined
    },
    detailRejection(state, node) {
      const installedDrivers = csiNodes.get(node.name)?.spec.drivers
      return [...state.claimsByDriver].flatMap(([driver, claims]): RejectionDetail[] => {
        const csiNodeDriver = installedDrivers?.find(({ name }) => name === driver)
        if (!csiNodeDriver && state.requiredDrivers.has(driver))
          return [{ type: 'DriverMissing', message: `the CSI driver ${driver} is not registered on the node` }]
        const limit = csiNodeDriver?.allocatable?.count
        const { used, provisioning, newCount } = countOnNode(node, driver, claims)
        if (limit === undefined || newCount === 0 || used + newCount <= limit) return []
        const share = provisioning > 0 ? ` (${provisioning} of them for volumes that are being provisioned)` : ''
        const message = `the pod needs ${newCount} more volumes of ${driver}, but ${used} of at most ${limit} are in use${share}`
        return [{ type: 'TooManyVolumes', message, numbers: { requested: newCount, used, limit } }]
      })
    },
    signPod: (pod) =>
      pod.claims.length > 0 ? [...claimsByDriver(pod)].map(([driver, { length }]) => [driver, length]) : undefined,
    observe(event) {
      if (event.on === 'attachment') {
        const { next, old } = event
        // Node and volume of an attachment are immutable, so updates can be ignored.
        if (!next || !old) invalidate(cluster.node((next ?? old)?.spec.nodeName ?? ''))
      } else if (event.on === 'claim') {
        const { next, old } = event
        if (!next || next.spec?.volumeName === old?.spec?.volumeName) return
        for (const pod of cluster.podsUsing(keyOfObject(next))) invalidate(cluster.nodeOf(pod))
      }
    },
  }
}

/** A volume was detached from its node. */
const attachmentDeleted: QueueingHint<'attachment'> = {
  on: 'attachment',
  scope: 'class',
  keysOfPod: () => ANY_NODE,
  keysOfEvent: ({ next }) => (next ? [] : ANY_NODE),
  hint: (pod, { old }, context) => hintForNode(pod, old?.spec.nodeName ?? '', context),
}

/** A volume is no longer being provisioned for a node. */
const provisioningEnded: QueueingHint<'claim'> = {
  on: 'claim',
  scope: 'class',
  keysOfPod: () => ANY_NODE,
  keysOfEvent: ({ next, old }) => (selectedNodeOf(old)[0] === selectedNodeOf(next)[0] || !old ? [] : ANY_NODE),
  hint: (pod, { old }, context) => hintForNode(pod, selectedNodeOf(old)[0] ?? '', context),
}

/** The CSIDriver was deleted: the driver no longer has to be registered on the node. */
const requirementDropped = (driversOf: (pod: PodInfo) => readonly string[]): QueueingHint<'csiDriver'> => ({
  on: 'csiDriver',
  scope: 'class',
  keysOfPod: driversOf,
  keysOfEvent: ({ next, old }) => (old && !next ? [old.metadata.name ?? ''] : []),
})
