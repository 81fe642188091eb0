// Writes the drivers of this node to the cluster: CSINode, the node's topology labels, and the node ID annotation.
// A driver whose topology contradicts an existing label is rejected, because an administrator may have set the label.
import type { Stored } from '../../api/kind.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import type { CSINode, CSINodeDriver } from '../../api/kinds/csi-node/csi-node-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { isAlreadyExists, isConflict } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { keyedLock } from '../../base/keyed-lock.ts'
import { type Client, find } from '../../client/index.ts'

/** NodeGetInfo of a driver. */
export interface DriverOnNode {
  readonly name: string
  readonly nodeId: string
  readonly topology: Readonly<Record<string, string>>
  /** 0: no limit. */
  readonly maxVolumes: number
}

export interface CsiNodeWriter {
  addDriver(driver: DriverOnNode): Promise<void>
  /** Keeps labels: other drivers and volumes may rely on them. */
  removeDriver(driverName: string): Promise<void>
  /** Creates the CSINode if it does not exist, owned by the Node. */
  ensureCsiNode(): Promise<void>
}

export const NODE_IDS = 'csi.volume.kubernetes.io/nodeid'
const VOLUMES_MAX = 2 ** 31 - 1 // the field is an int32
const WRITES_MAX = 5
const FIRST_PAUSE_MS = 10
const PAUSE_GROWTH = 5

export interface CsiNodeWriterDeps {
  readonly client: Client
  readonly nodeName: string
  readonly clock: Clock
}

export function createCsiNodeWriter({ client, nodeName, clock }: CsiNodeWriterDeps): CsiNodeWriter {
  const ref = { name: nodeName }
  const lock = keyedLock() // drivers register concurrently and change the same two objects

  /** Retries on conflict. */
  async function untilWritten(write: () => Promise<void>): Promise<void> {
    for (let tries = 1, pauseMs = FIRST_PAUSE_MS; ; tries++, pauseMs *= PAUSE_GROWTH) {
      try {
        return await write()
      } catch (error) {
        if (!(isConflict(error) || isAlreadyExists(error)) || tries === WRITES_MAX) throw error
        await clock.sleep(pauseMs)
      }
    }
  }

  const readCsiNode = () => find(client, csiNodeKind, ref)

  /** The CSINode owned by this Node; one of an earlier Node of the same name is replaced. */
  async function ownCsiNode(): Promise<Readonly<Stored<CSINode>>> {
    const { metadata } = await client.get(nodeKind, ref)
    const found = await readCsiNode()
    const isOurs = found?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid)
    if (found && isOurs) return found
    if (found) await client.delete(csiNodeKind, ref, { uid: found.metadata.uid })
    const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: metadata.uid }
    return client.create(csiNodeKind, { metadata: { name: nodeName, ownerReferences: [owner] }, spec: { drivers: [] } })
  }

  async function writeDriver(driver: DriverOnNode): Promise<void> {
    const entry = entryOf(driver)
    let found = await ownCsiNode()
    const before = found.spec.drivers.find(({ name }) => name === driver.name)
    if (before && JSON.stringify(normal(before)) === JSON.stringify(normal(entry))) return
    const others = found.spec.drivers.filter(({ name }) => name !== driver.name)
    const isAnother = before && JSON.stringify(fixedPart(before)) !== JSON.stringify(fixedPart(entry))
    // nodeID and topologyKeys are immutable: remove the entry and add it again.
    if (isAnother) found = await client.update(csiNodeKind, { ...found, spec: { drivers: others } })
    await client.update(csiNodeKind, { ...found, spec: { drivers: [...others, entry] } })
  }

  async function writeLabels({ name, nodeId, topology }: DriverOnNode): Promise<void> {
    const node = await client.get(nodeKind, ref)
    const conflict = labelConflict(node, name, topology)
    if (conflict) throw new Error(conflict)
    const ids = nodeIdsOf(node)
    const labels = node.metadata.labels ?? {}
    const isKnown = Object.entries(topology).every(([key, value]) => labels[key] === value)
    if (isKnown && ids[name] === nodeId) return
    await patchNode(node, { labels: topology, annotations: { [NODE_IDS]: JSON.stringify({ ...ids, [name]: nodeId }) } })
  }

  const patchNode = (node: Readonly<Node>, metadata: object) =>
    client.patch(nodeKind, ref, {
      type: 'merge',
      body: { metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion } },
    })

  return {
    ensureCsiNode: () => lock('node', () => untilWritten(async () => void (await ownCsiNode()))),
    addDriver: (driver) =>
      lock('node', async () => {
        await untilWritten(() => writeLabels(driver))
        await untilWritten(() => writeDriver(driver))
      }),
    removeDriver: (driverName) =>
      lock('node', async () => {
        await untilWritten(async () => {
          const found = await readCsiNode()
          const drivers = found?.spec.drivers.filter(({ name }) => name !== driverName)
          if (!found || drivers?.length === found.spec.drivers.length) return
          await client.update(csiNodeKind, { ...found, spec: { drivers: drivers! } })
        })
        await untilWritten(async () => {
          const node = await find(client, nodeKind, ref)
          if (!node) return
          const { [driverName]: gone, ...others } = nodeIdsOf(node)
          if (gone === undefined) return
          const text = Object.keys(others).length > 0 ? JSON.stringify(others) : null
          await patchNode(node, { annotations: { [NODE_IDS]: text } })
        })
      }),
  }
}

/** The CSINode entry of a driver. */
export function entryOf({ name, nodeId, topology, maxVolumes }: DriverOnNode): CSINodeDriver {
  const count = Math.min(maxVolumes, VOLUMES_MAX)
  return {
    name,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).sort(),
    ...(count > 0 ? { allocatable: { count } } : {}),
  }
}

/** Why a driver's topology contradicts the node's labels; undefined if it does not. */
export function labelConflict(
  { metadata }: Readonly<Node>,
  driverName: string,
  topology: DriverOnNode['topology'],
): string | undefined {
  const labels = metadata.labels ?? {}
  for (const [key, value] of Object.entries(topology)) {
    const existing = Object.hasOwn(labels, key) ? labels[key] : undefined
    if (existing === undefined || existing === value) continue
    return (
      `node "${metadata.name}" has the label ${key}=${existing}, but driver "${driverName}" reports ${value}. ` +
      'Correct the driver, or remove the label if no volume relies on it'
    )
  }
  return undefined
}

function nodeIdsOf({ metadata }: Readonly<Node>): Record<string, string> {
  try {
    const ids = JSON.parse(metadata.annotations?.[NODE_IDS] ?? '{}')
    return typeof ids === 'object' && ids !== null && !Array.isArray(ids) ? ids : {}
  } catch {
    return {} // invalid: replaced by the next write
  }
}

const fixedPart = ({ name, nodeID, topologyKeys }: CSINodeDriver) => [name, nodeID, topologyKeys ?? []]
const normal = (entry: CSINodeDriver) => [...fixedPart(entry), entry.allocatable?.count ?? 0]
