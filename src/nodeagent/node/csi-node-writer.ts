// Writes the drivers of this node to the API server: the CSINode object, and the topology labels and node ID annotation of
// the Node. A driver whose topology contradicts a label is rejected, because an administrator may have set the label; the
// condition TopologyConflict of the Node reports it.
import type { Stored } from '../../api/kind.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import type { CSINode, CSINodeDriver } from '../../api/kinds/csi-node/csi-node-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { isAlreadyExists, isConflict } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { keyedLock } from '../../base/keyed-lock.ts'
import { timestamp } from '../../base/timestamps.ts'
import { type Client, find } from '../../client/index.ts'
import type { EventDetails } from '../../runtime/index.ts'

/** The name of a driver and its response to NodeGetInfo. */
export interface DriverNodeInfo {
  readonly name: string
  readonly nodeId: string
  readonly topology: Readonly<Record<string, string>>
  /** The maximum number of volumes, or 0 for no limit. */
  readonly maxVolumes: number
}

export interface CsiNodeWriter {
  addDriver(driver: DriverNodeInfo): Promise<void>
  /** Removes the driver and its conflict, but keeps the labels, because other drivers and volumes may rely on them. */
  removeDriver(driverName: string): Promise<void>
  /** Removes the conflict of a driver that was rejected and is gone. */
  clearConflict(driverName: string): Promise<void>
  /** Creates the CSINode, owned by the Node. Replaces one that the Node does not own, e.g. of an earlier Node with this name. */
  ensureCsiNode(): Promise<void>
}

const NODE_ID_ANNOTATION = 'csi.volume.kubernetes.io/nodeid'
export const TOPOLOGY_CONFLICT = 'TopologyConflict'
const VOLUMES_MAX = 2 ** 31 - 1 // the field is an int32
const ATTEMPTS_MAX = 5
const RETRY_MS_MIN = 10
const RETRY_FACTOR = 5

type StoredNode = Readonly<Stored<Node>>

export interface CsiNodeWriterDeps {
  readonly client: Client
  readonly nodeName: string
  readonly clock: Clock
  /** Records an event about the node. */
  recordEvent(node: StoredNode, event: EventDetails): void
}

export function createCsiNodeWriter({ client, nodeName, clock, recordEvent }: CsiNodeWriterDeps): CsiNodeWriter {
  /** Why drivers are rejected, by driver. */
  const conflicts = new Map<string, string>()
  const ref = { name: nodeName }
  const lock = keyedLock() // drivers register concurrently and update the same objects

  async function retryOnConflict(write: () => Promise<void>): Promise<void> {
    for (let attempt = 1, delayMs = RETRY_MS_MIN; ; attempt++, delayMs *= RETRY_FACTOR) {
      try {
        return await write()
      } catch (error) {
        if (!(isConflict(error) || isAlreadyExists(error)) || attempt === ATTEMPTS_MAX) throw error
        await clock.sleep(delayMs)
      }
    }
  }

  const readCsiNode = () => find(client, csiNodeKind, ref)

  /** Returns the CSINode that this Node owns. Creates it if it does not exist, and replaces one that this Node does not own. */
  async function getOrCreateCsiNode(): Promise<Readonly<Stored<CSINode>>> {
    const { metadata } = await client.get(nodeKind, ref)
    const csiNode = await readCsiNode()
    const isOwned = csiNode?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid)
    if (csiNode && isOwned) return csiNode
    if (csiNode) await client.delete(csiNodeKind, ref, { uid: csiNode.metadata.uid })
    const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: metadata.uid }
    return client.create(csiNodeKind, { metadata: { name: nodeName, ownerReferences: [owner] }, spec: { drivers: [] } })
  }

  async function writeCsiNode(driver: DriverNodeInfo): Promise<void> {
    const entry = toCsiNodeDriver(driver)
    let csiNode = await getOrCreateCsiNode()
    const previousEntry = csiNode.spec.drivers.find(({ name }) => name === driver.name)
    if (previousEntry && JSON.stringify(comparedFields(previousEntry)) === JSON.stringify(comparedFields(entry))) return
    const otherDrivers = csiNode.spec.drivers.filter(({ name }) => name !== driver.name)
    const isReplaced =
      previousEntry && JSON.stringify(immutableFields(previousEntry)) !== JSON.stringify(immutableFields(entry))
    // nodeID and topologyKeys are immutable: remove the entry and add it again.
    if (isReplaced) csiNode = await client.update(csiNodeKind, { ...csiNode, spec: { drivers: otherDrivers } })
    await client.update(csiNodeKind, { ...csiNode, spec: { drivers: [...otherDrivers, entry] } })
  }

  async function writeNode({ name, nodeId, topology }: DriverNodeInfo): Promise<void> {
    const currentNode = await client.get(nodeKind, ref)
    const conflict = describeLabelConflict(currentNode, name, topology)
    if (conflict) {
      await writeConflict(currentNode, name, conflict).catch((error: unknown) => {
        if (isConflict(error)) throw error // otherwise the next registration writes the condition
      })
      throw new Error(conflict)
    }
    const node = await writeConflict(currentNode, name)
    const ids = nodeIdsOf(node)
    const labels = node.metadata.labels ?? {}
    const hasLabels = Object.entries(topology).every(([key, value]) => labels[key] === value)
    if (hasLabels && ids[name] === nodeId) return
    await patchNode(node, {
      labels: topology,
      annotations: { [NODE_ID_ANNOTATION]: JSON.stringify({ ...ids, [name]: nodeId }) },
    })
  }

  /** Writes the condition only if it changes: a rejected driver is registered again and again. */
  async function writeConflict(node: StoredNode, driver: string, conflict?: string): Promise<StoredNode> {
    if (conflict) conflicts.set(driver, conflict)
    else conflicts.delete(driver)
    const existing = node.status?.conditions?.find(({ type }) => type === TOPOLOGY_CONFLICT)
    const status = conflicts.size > 0 ? 'True' : 'False'
    const message = [...conflicts.values()].join('; ') || 'no driver contradicts the labels of the node'
    if (existing ? existing.status === status && existing.message === message : status === 'False') return node
    const now = timestamp(clock.nowMs())
    const condition = {
      type: TOPOLOGY_CONFLICT,
      status,
      reason: status === 'True' ? 'LabelConflict' : 'NoConflict',
      message,
      lastTransitionTime: existing?.status === status ? (existing.lastTransitionTime ?? now) : now,
    }
    const body = { metadata: { resourceVersion: node.metadata.resourceVersion }, status: { conditions: [condition] } }
    const updatedNode = await client.patch(nodeKind, ref, { type: 'strategic', body }, { subresource: 'status' })
    if (conflict) recordEvent(node, { type: 'Warning', reason: TOPOLOGY_CONFLICT, message: conflict })
    return updatedNode
  }

  const patchNode = (node: Readonly<Node>, metadata: object) =>
    client.patch(nodeKind, ref, {
      type: 'merge',
      body: { metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion } },
    })

  return {
    ensureCsiNode: () => lock('node', () => retryOnConflict(async () => void (await getOrCreateCsiNode()))),
    addDriver: (driver) =>
      lock('node', async () => {
        await retryOnConflict(() => writeNode(driver))
        await retryOnConflict(() => writeCsiNode(driver))
      }),
    clearConflict: (driverName) =>
      lock('node', () =>
        retryOnConflict(async () => {
          const node = conflicts.has(driverName) ? await find(client, nodeKind, ref) : undefined
          if (node) await writeConflict(node, driverName)
        }),
      ),
    removeDriver: (driverName) =>
      lock('node', async () => {
        await retryOnConflict(async () => {
          const csiNode = await readCsiNode()
          const drivers = csiNode?.spec.drivers.filter(({ name }) => name !== driverName)
          if (!csiNode || drivers?.length === csiNode.spec.drivers.length) return
          await client.update(csiNodeKind, { ...csiNode, spec: { drivers: drivers! } })
        })
        await retryOnConflict(async () => {
          const currentNode = await find(client, nodeKind, ref)
          if (!currentNode) return
          const node = await writeConflict(currentNode, driverName)
          const { [driverName]: removedId, ...otherIds } = nodeIdsOf(node)
          if (removedId === undefined) return
          const annotation = Object.keys(otherIds).length > 0 ? JSON.stringify(otherIds) : null
          await patchNode(node, { annotations: { [NODE_ID_ANNOTATION]: annotation } })
        })
      }),
  }
}

/** Returns the CSINode entry of a driver. */
function toCsiNodeDriver({ name, nodeId, topology, maxVolumes }: DriverNodeInfo): CSINodeDriver {
  const count = Math.min(maxVolumes, VOLUMES_MAX)
  return {
    name,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).sort(),
    ...(count > 0 ? { allocatable: { count } } : {}),
  }
}

/** Returns a message if the topology of the driver contradicts the node's labels, otherwise undefined. */
function describeLabelConflict(
  { metadata }: Readonly<Node>,
  driverName: string,
  topology: DriverNodeInfo['topology'],
): string | undefined {
  const labels = metadata.labels ?? {}
  for (const [key, value] of Object.entries(topology)) {
    const existingValue = Object.hasOwn(labels, key) ? labels[key] : undefined
    if (existingValue === undefined || existingValue === value) continue
    return (
      `node "${metadata.name}" has the label ${key}=${existingValue}, but driver "${driverName}" reports ${value}. ` +
      'Correct the driver, or remove the label if no volume relies on it'
    )
  }
  return undefined
}

function nodeIdsOf({ metadata }: Readonly<Node>): Record<string, string> {
  try {
    const ids = JSON.parse(metadata.annotations?.[NODE_ID_ANNOTATION] ?? '{}')
    return typeof ids === 'object' && ids !== null && !Array.isArray(ids) ? ids : {}
  } catch {
    return {} // an invalid annotation is replaced by the next write
  }
}

const immutableFields = ({ name, nodeID, topologyKeys }: CSINodeDriver) => [name, nodeID, topologyKeys ?? []]
const comparedFields = (entry: CSINodeDriver) => [...immutableFields(entry), entry.allocatable?.count ?? 0]
