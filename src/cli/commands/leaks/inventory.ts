// Reads the volumes and snapshots of CSI drivers from each process of a driver. Processes that serve one node each, such as
// the local driver, list only that node's volumes.

import { timestamp } from '../../../base/timestamps.ts'
import type { Snapshot, Volume } from '../../../csi/gen/csi_pb.js'
import {
  type ControllerCapability,
  type CsiDriver,
  CsiError,
  type DriverFacts,
  readDriverFacts,
} from '../../../csi/index.ts'

/** A driver process that responds on a socket. */
export interface DriverProcess {
  readonly address: string
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  /** The topology of this process's node. Absent if the process serves no node, or the driver has no topology. */
  readonly segments?: Readonly<Record<string, string>>
  /** The pool of the local driver, if it can be read on this machine. */
  readonly pool?: string
  /** The directory of the node agent or kubelet whose driver this is, if it can be read on this machine. */
  readonly nodeRoot?: string
}

export interface DriverVolume {
  readonly handle: string
  /** Absent if the driver does not report it. */
  readonly sizeBytes?: number
  readonly context: Readonly<Record<string, string>>
  readonly topology: readonly Readonly<Record<string, string>>[]
  /** Absent if the driver does not report it. */
  readonly publishedNodeIds?: readonly string[]
  readonly process: DriverProcess
}

export interface DriverSnapshot {
  readonly handle: string
  readonly sourceHandle: string
  readonly sizeBytes?: number
  readonly createdAt?: string
  /** The group snapshot of which it is a part. */
  readonly groupId?: string
  readonly process: DriverProcess
}

/** The volumes and snapshots of all processes of one driver. */
export interface Inventory {
  readonly driver: string
  readonly processes: readonly DriverProcess[]
  /** By handle. Undefined if the driver cannot list volumes. */
  readonly volumes: ReadonlyMap<string, DriverVolume> | undefined
  /** By handle. Undefined if the driver cannot list snapshots. */
  readonly snapshots: ReadonlyMap<string, DriverSnapshot> | undefined
}

export interface ReadDriverOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Reads the name, the capabilities and the node of a driver process. */
export async function identifyProcess(
  { address, driver, ...directories }: Pick<DriverProcess, 'address' | 'driver' | 'pool' | 'nodeRoot'>,
  { timeoutMs, signal }: ReadDriverOptions,
): Promise<DriverProcess> {
  const facts = await readDriverFacts(driver, signal)
  const process = { address, driver, facts, ...directories }
  if (!facts.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')) return process
  // A process with the controller service alone does not implement the call.
  const info = await driver.node.nodeGetInfo({}, { timeoutMs, signal }).catch(() => undefined)
  const segments = info?.accessibleTopology?.segments
  return segments && Object.keys(segments).length > 0 ? { ...process, segments } : process
}

/** Reads the volumes and snapshots of the processes, and groups them by driver. */
export async function readInventories(
  processes: readonly DriverProcess[],
  options: ReadDriverOptions,
): Promise<Inventory[]> {
  const names = [...new Set(processes.map(({ facts }) => facts.name))].sort()
  return Promise.all(
    names.map(async (driver) => {
      const driverProcesses = processes.filter(({ facts }) => facts.name === driver)
      const canAll = (capability: ControllerCapability) =>
        driverProcesses.every(({ facts }) => facts.controller.has(capability))
      return {
        driver,
        processes: driverProcesses,
        volumes: canAll('LIST_VOLUMES')
          ? await readEach(driverProcesses, (process) => listVolumes(process, options))
          : undefined,
        snapshots: canAll('LIST_SNAPSHOTS')
          ? await readEach(driverProcesses, (process) => listSnapshots(process, options))
          : undefined,
      }
    }),
  )
}

async function readEach<T extends { readonly handle: string }>(
  processes: readonly DriverProcess[],
  read: (process: DriverProcess) => Promise<readonly T[]>,
): Promise<ReadonlyMap<string, T>> {
  const lists = await Promise.all(processes.map(read))
  return new Map(lists.flat().map((item) => [item.handle, item]))
}

const listVolumes = (process: DriverProcess, { timeoutMs, signal }: ReadDriverOptions): Promise<DriverVolume[]> =>
  readPages('ListVolumes', process, async (startingToken) => {
    const { entries, nextToken } = await process.driver.controller.listVolumes({ startingToken }, { timeoutMs, signal })
    const listsNodes = process.facts.controller.has('LIST_VOLUMES_PUBLISHED_NODES')
    const items = entries.flatMap(({ volume, status }) =>
      volume?.volumeId
        ? [
            {
              ...describeVolume(volume, process),
              ...(listsNodes && status ? { publishedNodeIds: status.publishedNodeIds } : {}),
            },
          ]
        : [],
    )
    return { items, nextToken }
  })

function describeVolume(volume: Volume, process: DriverProcess): DriverVolume {
  return {
    handle: volume.volumeId,
    ...(volume.capacityBytes > 0n ? { sizeBytes: Number(volume.capacityBytes) } : {}),
    context: { ...volume.volumeContext },
    topology: volume.accessibleTopology.map(({ segments }) => ({ ...segments })),
    process,
  }
}

const listSnapshots = (process: DriverProcess, { timeoutMs, signal }: ReadDriverOptions): Promise<DriverSnapshot[]> =>
  readPages('ListSnapshots', process, async (startingToken) => {
    const { entries, nextToken } = await process.driver.controller.listSnapshots(
      { startingToken },
      { timeoutMs, signal },
    )
    return {
      items: entries.flatMap(({ snapshot }) => (snapshot?.snapshotId ? [describeSnapshot(snapshot, process)] : [])),
      nextToken,
    }
  })

function describeSnapshot(snapshot: Snapshot, process: DriverProcess): DriverSnapshot {
  const { snapshotId, sourceVolumeId, sizeBytes, creationTime, groupSnapshotId } = snapshot
  return {
    handle: snapshotId,
    sourceHandle: sourceVolumeId,
    ...(sizeBytes > 0n ? { sizeBytes: Number(sizeBytes) } : {}),
    ...(creationTime ? { createdAt: timestamp(Number(creationTime.seconds) * 1_000) } : {}),
    ...(groupSnapshotId ? { groupId: groupSnapshotId } : {}),
    process,
  }
}

/** The command fails after this many pages, because the driver probably repeats them. */
const PAGES_MAX = 100_000
/** The maximum number of restarts of a list whose token became invalid. */
const RESTARTS_MAX = 3

/** Reads all pages. The driver chooses their size, because some drivers reject max_entries. */
async function readPages<T>(
  method: string,
  { address, facts }: DriverProcess,
  readPage: (startingToken: string) => Promise<{ items: readonly T[]; nextToken: string }>,
): Promise<T[]> {
  for (let restarts = 0; ; restarts++) {
    const items: T[] = []
    let token = ''
    try {
      for (let pages = 0; pages < PAGES_MAX; pages++) {
        const page = await readPage(token)
        items.push(...page.items)
        if (page.nextToken === '') return items
        if (page.nextToken === token) break
        token = page.nextToken
      }
    } catch (error) {
      const isExpiredToken = error instanceof CsiError && error.codeName === 'ABORTED' && token !== ''
      if (!isExpiredToken || restarts >= RESTARTS_MAX) throw describeFailure(error, method, facts.name, address)
      continue
    }
    throw new Error(
      `${method} of the driver ${facts.name} at ${address} does not end: it repeats the page after "${token}".`,
    )
  }
}

const describeFailure = (error: unknown, method: string, driver: string, address: string): Error =>
  error instanceof CsiError && error.codeName === 'CANCELLED'
    ? Object.assign(new Error(error.message), { name: 'AbortError' })
    : new Error(`${method} of the driver ${driver} at ${address} failed: ${(error as Error).message}`)
