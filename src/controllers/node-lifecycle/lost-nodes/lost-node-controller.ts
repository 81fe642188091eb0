// Creates the lost-node controller. Its keys are node names. A node is enqueued when it changes and, while it is fenced, when one
// of its pods or attachments, its lease or any capacity object is created or deleted, or a claim waits for a volume on it.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { isFenced, RELEASED_FENCE } from '../../../api/kinds/node/fencing.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { keyOfObject } from '../../../client/index.ts'
import type { ControllerDeps } from '../../../runtime/controller-deps.ts'
import { type Controller, createController, source } from '../../../runtime/index.ts'
import type { NodeLifecycleContext } from '../context.ts'
import type { LostNodesContext } from './context.ts'
import { indexPendingClaims, isPendingOn } from './pending-claims.ts'
import { indexAttachments } from './read-facts.ts'
import { reconcileLostNode } from './reconcile-lost-node.ts'

const BY_FENCE = 'node-lifecycle/fenced'

export function createLostNodeController(
  { caches, random, log, metrics }: ControllerDeps,
  shared: NodeLifecycleContext,
): Controller {
  const context: LostNodesContext = {
    ...shared,
    attachments: caches.of(volumeAttachmentKind),
    claims: caches.of(persistentVolumeClaimKind),
    volumes: caches.of(persistentVolumeKind),
    capacities: caches.of(csiStorageCapacityKind),
  }
  const { clock, nodes, leases, pods, attachments, claims, volumes, capacities } = context
  indexAttachments(attachments)
  indexPendingClaims(claims)
  nodes.addIndex(BY_FENCE, (node) => (isFenced(node) ? [BY_FENCE] : []))
  const fencedNodes = (): string[] => nodes.byIndex(BY_FENCE, BY_FENCE).map(keyOfObject)
  const ifFenced = (name: string | undefined): string[] => (name && isFenced(nodes.get({ name })) ? [name] : [])
  const isBeingDeleted = ({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean =>
    metadata.deletionTimestamp !== undefined
  return createController({
    clock,
    random,
    log,
    metrics,
    name: 'lost_nodes',
    operation: { component: 'node-lifecycle', name: 'RecoverNode' },
    sources: [
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: isRelevantChange }),
      source({
        cache: pods,
        keysOf: ({ spec }) => ifFenced(spec?.nodeName),
        matters: (next, old) => isBeingDeleted(next) !== isBeingDeleted(old),
      }),
      source({ cache: attachments, keysOf: ({ spec }) => ifFenced(spec.nodeName), matters: () => false }),
      source({ cache: claims, keysOf: (claim) => fencedNodes().filter((name) => isPendingOn(claim, name)) }),
      source({ cache: leases, keysOf: ({ metadata: { name } }) => ifFenced(name), matters: () => false }),
      // A cluster has few fenced nodes, so each of them is checked.
      source({
        cache: capacities,
        keysOf: fencedNodes,
        matters: () => false,
        mayBeDisabled: true,
      }),
    ],
    reads: [volumes],
    reconcile: (name) => reconcileLostNode(name, context),
  })
}

function isRelevantChange(next: Readonly<Node>, old: Readonly<Node>): boolean {
  const relevantFieldsOf = ({ metadata, spec, status }: Readonly<Node>) =>
    JSON.stringify([
      spec?.taints,
      status?.conditions?.map(({ type, status: value }) => `${type}=${value}`),
      status?.volumesInUse,
      metadata.annotations?.[RELEASED_FENCE],
    ])
  return relevantFieldsOf(next) !== relevantFieldsOf(old)
}
