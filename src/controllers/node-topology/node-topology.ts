// Maintains the condition TopologyMismatch of nodes (plan-topology.ts), on any API server and for any node agent. The keys of
// the controller are node names. A node is enqueued when its labels, its drivers or the condition change, and when a topology
// key of one of its drivers begins or ceases to be used in the cluster (key-counts.ts). A mismatch is not retried: the change
// that resolves it enqueues the node.
import type { Stored } from '../../api/kind.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { timestamp } from '../../base/timestamps.ts'
import { find, keyOfObject } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  backOff,
  createController,
  createEventRecorder,
  done,
  type EventRecorder,
  type Outcome,
  type Runnable,
  source,
  stuck,
  type WorkQueue,
  withRecorders,
} from '../../runtime/index.ts'
import { createKeyCounts } from './key-counts.ts'
import {
  findTopologyMismatch,
  mismatchConditionOf,
  type NodeCondition,
  planCondition,
  type TopologyMismatch,
} from './plan-topology.ts'

export interface NodeTopologyOptions extends ControllerDeps {
  /** Default: a recorder of the component `node-topology`, which the controller runs itself. */
  readonly events?: EventRecorder
}

type StoredNode = Readonly<Stored<Node>>

const NAME = 'node-topology'
const WORKERS = 2
const BY_DRIVER = 'node-topology: driver'

export function createNodeTopologyController(
  options: NodeTopologyOptions,
): Runnable & { readonly queues: readonly WorkQueue[] } {
  const { client, caches, clock, random, log, metrics } = options
  const [nodes, csiNodes] = [caches.of(nodeKind), caches.of(csiNodeKind)]
  const volumes = caches.of(persistentVolumeKind)
  csiNodes.addIndex(BY_DRIVER, ({ spec }) => spec.drivers.map(({ name }) => name))
  const recorder = createEventRecorder({ client, clock, random, log, component: NAME })
  const events = options.events ?? recorder
  const counts = createKeyCounts(csiNodes, volumes)

  const findMismatch = (node: StoredNode): TopologyMismatch | undefined =>
    findTopologyMismatch({ node, csiNode: csiNodes.get({ name: node.metadata.name }), ...counts })

  async function reconcile(name: string): Promise<Outcome> {
    const node = nodes.get({ name })
    if (!node) return done
    const mismatch = findMismatch(node)
    if (!planCondition(node, mismatch, '')) return outcomeOf(mismatch)
    try {
      return await updateCondition(name)
    } catch (error) {
      if (isNotFound(error)) return done
      if (isConflict(error)) return backOff('the node changed during the reconcile')
      throw error
    }
  }

  /** Reads the node first: the cache may show new drivers earlier than the labels that were written before them. */
  async function updateCondition(name: string): Promise<Outcome> {
    const node = await find(client, nodeKind, { name })
    if (!node) return done
    const mismatch = findMismatch(node)
    const condition = planCondition(node, mismatch, timestamp(clock.nowMs()))
    if (!condition) return outcomeOf(mismatch)
    const body = { metadata: { resourceVersion: node.metadata.resourceVersion }, status: { conditions: [condition] } }
    nodes.applyWriteResult(
      await client.patch(nodeKind, { name }, { type: 'strategic', body }, { subresource: 'status' }),
    )
    recordChange(node, condition)
    return outcomeOf(mismatch)
  }

  function recordChange(node: StoredNode, { status, message }: NodeCondition): void {
    events.record(
      nodeKind,
      node,
      status === 'True'
        ? { type: 'Warning', reason: 'TopologyMismatch', message: `Node ${node.metadata.name}: ${message}` }
        : { type: 'Normal', reason: 'TopologyMatches', message: `Node ${node.metadata.name}: ${message}` },
    )
  }

  const controller = createController({
    name: NAME,
    operation: { component: NAME, name: 'CheckTopology' },
    clock,
    random,
    log,
    metrics,
    workers: WORKERS,
    sources: [
      source({
        cache: nodes,
        keysOf: (node) => [keyOfObject(node)],
        matters: (next, old) => relevantFields(next) !== relevantFields(old),
      }),
      source({
        cache: csiNodes,
        keysOf: (csiNode) => [keyOfObject(csiNode)],
        matters: (next, old) => JSON.stringify(next.spec.drivers) !== JSON.stringify(old.spec.drivers),
      }),
    ],
    reads: [volumes],
    reconcile,
  })
  metrics?.queues.add(controller.queue)

  async function run(signal: AbortSignal): Promise<void> {
    const stopFollowing = counts.follow((driver) => {
      for (const csiNode of csiNodes.byIndex(BY_DRIVER, driver)) controller.queue.add(keyOfObject(csiNode))
    })
    await controller.run(signal).finally(stopFollowing)
  }
  return withRecorders([{ queues: [controller.queue], run }], options.events ? [] : [recorder])
}

/** Labels, and the condition itself: another writer may have changed it. Heartbeats change neither. */
const relevantFields = (node: Readonly<Node>): string => {
  const { status, reason, message } = mismatchConditionOf(node) ?? {}
  return JSON.stringify([node.metadata.labels, status, reason, message])
}

const outcomeOf = (mismatch: TopologyMismatch | undefined): Outcome =>
  mismatch ? stuck(mismatch.message, { reason: mismatch.reason }) : done
