// Keeps the limits of staged volumes in force. Which cgroups a volume's users are in becomes known late and changes:
// containers start after their volumes are mounted. So the cgroups are looked up again at every scan, and a limit is
// written where it is not yet. What could not be enforced is remembered, for metrics and conditions.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Enforcement } from '../../host/host.ts'
import type { NodeHands } from '../backends/backend.ts'
import type { VolumeId } from '../ids.ts'
import type { Locks } from '../locks.ts'
import type { Records } from '../pool/record-files.ts'
import type { PresenceRecord, VolumeRecord } from '../pool/records.ts'
import { hasLimits } from './rates.ts'
import type { WorkloadCgroups } from './workload-cgroups.ts'

export interface LimitKeeper {
  /** Puts the record's limits in force now. Called with the volume's lock held. */
  enforce(volume: VolumeRecord): Promise<Enforcement>
  /** After it was unstaged. */
  forget(id: VolumeId): void
  /** How the last attempt went; nothing for a volume without limits, or not staged. */
  enforcement(id: VolumeId): Enforcement | undefined
  /** For whoever knows the workloads better than flags and pod ids do. */
  setWorkloadCgroups(id: VolumeId, paths: readonly string[]): Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export interface LimitKeeperDeps {
  readonly node: Pick<NodeHands, 'limit'>
  readonly volumes: Records<VolumeRecord>
  readonly presences: Records<PresenceRecord>
  readonly locks: Locks
  readonly cgroups: WorkloadCgroups
  readonly clock: Clock
  readonly log: Logger
}

/** How long a new container may run before its limits are found: a compromise with walking the cgroup tree. */
const SCAN_MS = 2_000

export function createLimitKeeper({
  node,
  volumes,
  presences,
  locks,
  cgroups,
  clock,
  log,
}: LimitKeeperDeps): LimitKeeper {
  const outcomes = new Map<VolumeId, Outcome>()
  const named = new Map<VolumeId, readonly string[]>()

  const cgroupsOf = async (id: VolumeId) => {
    const podUids = (presences.get(id)?.published ?? []).flatMap(({ podUid }) => podUid ?? [])
    return [...new Set([...(named.get(id) ?? []), ...(await cgroups.find(podUids))])].sort()
  }

  async function enforce(volume: VolumeRecord): Promise<Enforcement> {
    const found = await cgroupsOf(volume.id)
    // A volume without its limits is better than none: what is not enforced is told, and tried again.
    const enforcement = await node
      .limit(volume, found)
      .catch((error: Error): Enforcement => ({ is: 'not enforced', because: error.message }))
    if (hasLimits(volume.limits)) {
      if (enforcement.is === 'not enforced' && outcomes.get(volume.id)?.enforcement.is !== 'not enforced') {
        log.warn({ volume: volume.id, because: enforcement.because }, 'the limits of a volume are not enforced')
      }
      outcomes.set(volume.id, { enforcement, cgroups: found })
    } else outcomes.delete(volume.id)
    return enforcement
  }

  /** Only where users have come or gone: a limit that is in force is left alone. */
  async function scan(): Promise<void> {
    for (const [id, outcome] of [...outcomes]) {
      const volume = volumes.get(id)
      if (!volume || locks.isHeld(id) || holds(outcome, await cgroupsOf(id))) continue
      await locks
        .run({ exclusive: [id] }, () => enforce(volume))
        .catch((error: Error) => {
          log.warn({ volume: id, because: error.message }, 'limits could not be renewed; trying again at the next scan')
        })
    }
  }

  return {
    enforce,
    forget(id) {
      outcomes.delete(id)
      named.delete(id)
    },
    enforcement: (id) => outcomes.get(id)?.enforcement,
    async setWorkloadCgroups(id, paths) {
      named.set(id, [...paths])
      await scan()
    },
    async run(signal) {
      while (!signal.aborted) {
        await scan()
        await clock.sleep(SCAN_MS, signal).catch(() => {})
      }
    },
  }
}

interface Outcome {
  readonly enforcement: Enforcement
  /** For whom it was tried. */
  readonly cgroups: readonly string[]
}

/** Whether these are still the users it was tried for, and all of them are limited: a cgroup may be named before it is there. */
function holds({ enforcement, cgroups }: Outcome, now: readonly string[]): boolean {
  if (now.join('\n') !== cgroups.join('\n')) return false
  if (enforcement.is === 'not enforced') return now.length === 0
  return now.every((cgroup) =>
    enforcement.cgroups.some((holder) => cgroup === holder || cgroup.startsWith(`${holder}/`)),
  )
}
