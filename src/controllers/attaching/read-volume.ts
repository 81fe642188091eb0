// Reads the input of plan-volume.ts from the caches: which nodes need the volume, and the existing attachments. Also
// records in volume-state.ts the time at which it first found the node of an unneeded attachment deleted.
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import { attachmentNameOf, isAttachmentName } from '../../volumes/attachment-names.ts'
import {
  type Attachment,
  attachmentsOfVolume,
  attachmentsOnNode,
  isSingleNode,
  needsAttach,
  type Volume,
} from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { attachedVolumeName, isMounted, isOutOfService, isReady, isRecreated } from './node-state.ts'
import type { AttachmentView, DesiredAttachment, VolumeView } from './plan-volume.ts'
import { needsVolumes, usesClaim } from './pod-use.ts'

export const PODS_BY_CLAIM = 'attaching/claim'

export function readVolume(volumeName: string, context: AttachingContext): VolumeView {
  const volume = context.volumes.get(volumeName)
  const desiredList = volume ? desiredAttachments(volume, context) : []
  const isDesired = ({ metadata }: Attachment) =>
    desiredList.some(({ attachmentName }) => attachmentName === metadata.name)
  const attachments = attachmentsOfVolume(context.attachments, volumeName).map((attachment) =>
    readAttachment(attachment, volume, isDesired(attachment), context),
  )
  const { deletedSinceMs } = context.states.stateOf(volumeName)
  const uids = new Set(attachments.map(({ attachment }) => attachment.metadata.uid))
  for (const uid of deletedSinceMs.keys()) if (!uids.has(uid)) deletedSinceMs.delete(uid)
  return {
    name: volumeName,
    isSingleNode: isSingleNode(volume?.spec ?? {}),
    desiredAttachments: desiredList,
    attachments,
  }
}

/** Returns the nodes with pods that need the volume; none unless it is a bound CSI volume whose driver requires attachment. */
export function desiredAttachments(volume: Volume, context: AttachingContext): DesiredAttachment[] {
  const { claims, pods, nodes, drivers } = context
  const { csi, claimRef } = volume.spec ?? {}
  if (!csi || !claimRef || !needsAttach(drivers.get(csi.driver))) return []
  const claim = claims.get({ namespace: claimRef.namespace ?? '', name: claimRef.name ?? '' })
  if (!claim || claim.metadata.uid !== claimRef.uid || claim.status?.phase !== 'Bound') return []
  if (claim.spec?.volumeName !== volume.metadata.name) return []

  const podsByNode = new Map<string, Readonly<Pod>[]>()
  for (const pod of pods.byIndex(PODS_BY_CLAIM, keyOfObject(claim)).toSorted(byAge)) {
    const nodeName = pod.spec?.nodeName ?? ''
    if (!usesClaim(pod, claim) || !needsVolumes(pod, isOutOfService(nodes.get(nodeName)))) continue
    const podsOnNode = podsByNode.get(nodeName)
    if (podsOnNode) podsOnNode.push(pod)
    else podsByNode.set(nodeName, [pod])
  }
  return [...podsByNode].map(([nodeName, podsOnNode]) => {
    const placement = { driver: csi.driver, handle: csi.volumeHandle, nodeName }
    return {
      nodeName,
      attachmentName: attachmentNameOf(placement),
      pods: podsOnNode,
      nodeExists: nodes.get(nodeName) !== undefined,
      ...countVolumesOnNode(placement, context),
    }
  })
}

const byAge = (a: Readonly<Pod>, b: Readonly<Pod>): number => (ageKey(a) < ageKey(b) ? -1 : 1)
const ageKey = (pod: Readonly<Pod>): string => `${pod.metadata.creationTimestamp} ${keyOfObject(pod)}`

/** Also counts attachments that are being created, so that concurrent reconciles do not exceed the limit. */
function countVolumesOnNode(
  { driver, nodeName }: { driver: string; nodeName: string },
  { csiNodes, attachments, states }: AttachingContext,
): Pick<DesiredAttachment, 'volumesOnNode' | 'volumesMax'> {
  const volumesMax = csiNodes.get(nodeName)?.spec.drivers.find(({ name }) => name === driver)?.allocatable?.count
  if (volumesMax === undefined) return { volumesOnNode: 0, volumesMax }
  const driverAttachments = attachmentsOnNode(attachments, nodeName).filter(({ spec }) => spec.attacher === driver)
  const names = new Set([
    ...driverAttachments.map(({ metadata }) => metadata.name),
    ...states.creationsOn({ nodeName, driver }),
  ])
  return { volumesOnNode: names.size, volumesMax }
}

function readAttachment(
  attachment: Attachment,
  volume: Volume | undefined,
  isDesired: boolean,
  { nodes, states, clock }: AttachingContext,
): AttachmentView {
  const { name, uid } = attachment.metadata
  const { nodeName, source } = attachment.spec
  const node = nodes.get(nodeName)
  const nodeState = readNodeState(node)
  const { deletedSinceMs } = states.stateOf(source.persistentVolumeName ?? '')
  if (isDesired || nodeState !== 'deleted') deletedSinceMs.delete(uid)
  else if (!deletedSinceMs.has(uid)) deletedSinceMs.set(uid, clock.monotonicMs())
  return {
    attachment,
    isManaged: isAttachmentName(name),
    nodeState,
    isMounted: !node || isRecreated(node, attachment) || isMounted(node, attachedVolumeName(attachment, volume, node)),
    deletedForMs: clock.monotonicMs() - (deletedSinceMs.get(uid) ?? clock.monotonicMs()),
  }
}

function readNodeState(node: Readonly<Node> | undefined): AttachmentView['nodeState'] {
  if (!node) return 'deleted'
  if (isReady(node)) return 'ready'
  return isOutOfService(node) ? 'out of service' : 'lost'
}
