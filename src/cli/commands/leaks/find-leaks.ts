// Finds leaks: reads the drivers, then the cluster, and compares them. If there are differences, it checks a second time,
// because objects change between two reads, and reports only differences that both checks found. `stowage leaks` and the
// console use it.
import type { Clock } from '../../../base/clock.ts'
import type { Client } from '../../../client/index.ts'
import { formatCount } from '../../output/units.ts'
import { checkUnlisted } from './check-volumes.ts'
import { type Cluster, readCluster } from './cluster.ts'
import { compareDriver, type Leak, REASONS } from './compare.ts'
import { type DriverProcess, type Inventory, readInventories } from './inventory.ts'
import { isStillRecorded, type Machine, readMachine } from './machine.ts'

export interface FindDeps {
  readonly client: Pick<Client, 'list'>
  readonly processes: readonly DriverProcess[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

export interface FindOptions {
  readonly gracePeriodMs: number
  readonly namedHandles: ReadonlySet<string>
}

export interface DriverSummary {
  readonly driver: string
  readonly sockets: readonly string[]
  /** Absent if the driver cannot list volumes. */
  readonly volumes?: number
  /** Absent if the driver cannot list snapshots. */
  readonly snapshots?: number
  /** PVs of the driver that were checked. */
  readonly pvs: number
}

export interface LeakReport {
  readonly drivers: readonly DriverSummary[]
  readonly leaks: readonly Leak[]
  /** What could not be checked, and why. */
  readonly unknown: readonly string[]
}

/** The report of one check, and the objects that it read. Adoption and deletion use them. */
export interface LeakCheck {
  readonly report: LeakReport
  readonly inventories: readonly Inventory[]
  readonly cluster: Cluster
  readonly machine: Machine
}

/** A call that takes longer fails. */
const CALL_TIMEOUT_MS = 60_000

export async function findLeaks(deps: FindDeps, options: FindOptions): Promise<LeakCheck> {
  const first = await checkOnce(deps, options)
  return first.report.leaks.length === 0 ? first : confirmLeaks(first.report.leaks, await checkOnce(deps, options))
}

/** Returns the later check, limited to the leaks that the earlier one also found. */
export function confirmLeaks(earlier: readonly Leak[], check: LeakCheck): LeakCheck {
  const keys = new Set(earlier.map(keyOfLeak))
  const leaks = check.report.leaks.filter((leak) => keys.has(keyOfLeak(leak)))
  return { ...check, report: { ...check.report, leaks } }
}

export const keyOfLeak = ({ reason, driver, handle = '', object = '', node = '', path = '' }: Leak): string =>
  JSON.stringify([reason, driver, handle, object, node, path])

/** Reads the drivers before the cluster, so that a new volume is not listed without its claim or PV. */
export async function checkOnce(
  { client, processes, clock, signal }: FindDeps,
  options: FindOptions,
): Promise<LeakCheck> {
  const call = { timeoutMs: CALL_TIMEOUT_MS, signal }
  const inventories = await readInventories(processes, call)
  const machine = await readMachine(processes)
  const cluster = await readCluster(client, signal)
  const drivers: DriverSummary[] = []
  const leaks: Leak[] = []
  const unknown: string[] = cluster.missingRules.map((rule) => `you need permission to ${rule}`)
  for (const inventory of inventories) {
    const compared = compareDriver(inventory, cluster, machine, { ...options, nowMs: clock.nowMs() })
    const checked = await checkUnlisted(compared.unlisted, inventory, call)
    leaks.push(...checked.leaks, ...compared.leaks)
    unknown.push(...describeUnknown(inventory, cluster, compared.unreachable), ...checked.problems)
    drivers.push(summarize(inventory, compared.checked))
  }
  const hasEnded = await Promise.all(
    leaks.map(async (leak) => isMountLeak(leak) && !(await isStillMounted(leak, machine))),
  )
  return {
    report: { drivers, leaks: leaks.filter((_, index) => !hasEnded[index]).sort(byReason), unknown },
    inventories,
    cluster,
    machine,
  }
}

const byReason = (a: Leak, b: Leak): number => REASONS.indexOf(a.reason) - REASONS.indexOf(b.reason)

function summarize({ driver, processes, volumes, snapshots }: Inventory, pvs: number): DriverSummary {
  return {
    driver,
    sockets: processes.map(({ address }) => address),
    ...(volumes ? { volumes: volumes.size } : {}),
    ...(snapshots ? { snapshots: snapshots.size } : {}),
    pvs,
  }
}

function describeUnknown(
  { driver, processes, volumes, snapshots }: Inventory,
  { contents }: Cluster,
  unreachable: number,
): string[] {
  const facts = processes[0]?.facts
  return [
    ...(volumes
      ? []
      : [
          `${driver} cannot list volumes (no LIST_VOLUMES): volumes without a PV and wrong sizes are not known; each PV was ` +
            `checked with ${facts?.controller.has('GET_VOLUME') ? 'ControllerGetVolume' : 'ValidateVolumeCapabilities'}`,
        ]),
    ...(volumes &&
    facts?.controller.has('PUBLISH_UNPUBLISH_VOLUME') &&
    !facts.controller.has('LIST_VOLUMES_PUBLISHED_NODES')
      ? [
          `${driver} does not list the nodes of volumes (no LIST_VOLUMES_PUBLISHED_NODES): attachments were not compared`,
        ]
      : []),
    ...(snapshots && snapshots.size > 0 && !contents
      ? [
          `${driver} has ${formatCount(snapshots.size, 'snapshot')}, not compared: VolumeSnapshotContents are not served or not readable`,
        ]
      : []),
    ...(facts?.controller.has('CREATE_DELETE_SNAPSHOT') && !snapshots
      ? [`${driver} cannot list snapshots (no LIST_SNAPSHOTS): snapshots were not compared`]
      : []),
    ...(unreachable > 0
      ? [
          `${driver} has ${formatCount(unreachable, 'PV')} on other nodes, not compared: pass the socket of the driver on these nodes with --csi-address`,
        ]
      : []),
  ]
}

const isMountLeak = ({ reason }: Leak): boolean => reason === 'MountWithoutPod' || reason === 'MountWithoutVolume'

async function isStillMounted({ path, handle }: Leak, { nodeVolumes }: Machine): Promise<boolean> {
  const volume = nodeVolumes.find((candidate) => candidate.path === path && candidate.handle === handle)
  return volume !== undefined && isStillRecorded(volume)
}
