// Tells the cluster which drivers this node has: CSINode, the node's topology labels, and the older annotation with node
// ids. A label that says otherwise already is somebody's statement about this node, so the driver is refused instead.
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import type { CSINode, CSINodeDriver } from '../../api/kinds/csi-node/csi-node-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { keyedLock } from '../../base/keyed-lock.ts'
import type { Client } from '../../client/index.ts'

/** A driver as it sees this node. */
export interface DriverOnNode {
  readonly name: string
  readonly nodeId: string
  readonly topology: Readonly<Record<string, string>>
  /** 0: no limit. */
  readonly maxVolumes: number
}

export interface Announcer {
  announce(driver: DriverOnNode): Promise<void>
  /** Labels stay: other drivers, and volumes, may rely on them. */
  withdraw(driverName: string): Promise<void>
  /** A CSINode for this node, owned by it, with the drivers it has; without any at first. */
  ensureCsiNode(): Promise<void>
}

export const NODE_IDS = 'csi.volume.kubernetes.io/nodeid'
const VOLUMES_MAX = 2 ** 31 - 1 // what the field holds
const WRITES_MAX = 5
const FIRST_PAUSE_MS = 10
const PAUSE_GROWTH = 5

export interface AnnouncerDeps {
  readonly client: Client
  readonly nodeName: string
  readonly clock: Clock
}

export function createAnnouncer({ client, nodeName, clock }: AnnouncerDeps): Announcer {
  const ref = { name: nodeName }
  const lock = keyedLock() // drivers register at the same time, and all change the same two objects

  /** Reads and writes again while others write in between. */
  async function untilWritten(write: () => Promise<void>): Promise<void> {
    for (let tries = 1, pauseMs = FIRST_PAUSE_MS; ; tries++, pauseMs *= PAUSE_GROWTH) {
      try {
        return await write()
      } catch (error) {
        const isRace = error instanceof ApiError && (error.code === 409 || error.reason === 'AlreadyExists')
        if (!isRace || tries === WRITES_MAX) throw error
        await clock.sleep(pauseMs)
      }
    }
  }

  const readCsiNode = () => client.get(csiNodeKind, ref).catch(ifMissing)

  /** The CSINode of this very node; one of an earlier node of the same name is replaced. */
  async function ownCsiNode(): Promise<Readonly<CSINode>> {
    const { metadata } = await client.get(nodeKind, ref)
    const found = await readCsiNode()
    const isOurs = found?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid)
    if (found && isOurs) return found
    if (found) await client.delete(csiNodeKind, ref, { ...(found.metadata.uid ? { uid: found.metadata.uid } : {}) })
    const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: metadata.uid ?? '' }
    return client.create(csiNodeKind, { metadata: { name: nodeName, ownerReferences: [owner] }, spec: { drivers: [] } })
  }

  async function writeDriver(driver: DriverOnNode): Promise<void> {
    const entry = entryOf(driver)
    let found = await ownCsiNode()
    const before = found.spec.drivers.find(({ name }) => name === driver.name)
    if (before && JSON.stringify(normal(before)) === JSON.stringify(normal(entry))) return
    const others = found.spec.drivers.filter(({ name }) => name !== driver.name)
    const isAnother = before && JSON.stringify(fixedPart(before)) !== JSON.stringify(fixedPart(entry))
    // An entry's node id and keys cannot change: it goes, and comes again.
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
    announce: (driver) =>
      lock('node', async () => {
        await untilWritten(() => writeLabels(driver))
        await untilWritten(() => writeDriver(driver))
      }),
    withdraw: (driverName) =>
      lock('node', async () => {
        await untilWritten(async () => {
          const found = await readCsiNode()
          const drivers = found?.spec.drivers.filter(({ name }) => name !== driverName)
          if (!found || drivers?.length === found.spec.drivers.length) return
          await client.update(csiNodeKind, { ...found, spec: { drivers: drivers! } })
        })
        await untilWritten(async () => {
          const node = await client.get(nodeKind, ref).catch(ifMissing)
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

/** Why the labels a driver wants cannot be put on the node, if so. */
export function labelConflict(
  { metadata }: Readonly<Node>,
  driverName: string,
  topology: DriverOnNode['topology'],
): string | undefined {
  const labels = metadata.labels ?? {}
  for (const [key, value] of Object.entries(topology)) {
    const there = Object.hasOwn(labels, key) ? labels[key] : undefined
    if (there === undefined || there === value) continue
    return (
      `node "${metadata.name}" has the label ${key}=${there}, and the driver "${driverName}" says ${value}. ` +
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
    return {} // nobody else can read it either
  }
}

const fixedPart = ({ name, nodeID, topologyKeys }: CSINodeDriver) => [name, nodeID, topologyKeys ?? []]
const normal = (entry: CSINodeDriver) => [...fixedPart(entry), entry.allocatable?.count ?? 0]

function ifMissing(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 404) return undefined
  throw error
}
