// Enforces the IO limits of staged volumes. The cgroups of a volume's users become known late and change, because
// containers start after their volumes are mounted; so a periodic scan looks them up again and writes missing limits.
// The last result per volume is kept for metrics and volume conditions.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Enforcement } from '../../host/host.ts'
import type { NodeOperations } from '../backends/backend.ts'
import type { VolumeId } from '../ids.ts'
import type { Locks } from '../locks.ts'
import type { Records } from '../pool/record-files.ts'
import type { MountRecord, VolumeRecord } from '../pool/records.ts'
import { hasLimits } from './rates.ts'
import type { WorkloadCgroups } from './workload-cgroups.ts'

export interface LimitReconciler {
  /** Applies the limits of the record. The caller holds the lock of the volume. */
  enforce(volume: VolumeRecord): Promise<Enforcement>
  /** Call it after the volume is unstaged. */
  forget(id: VolumeId): void
  /** The result of the last attempt; undefined for a volume that has no limits or is not staged. */
  enforcement(id: VolumeId): Enforcement | undefined
  /** Sets cgroups explicitly, in addition to those found by patterns and pod uids. */
  setWorkloadCgroups(id: VolumeId, paths: readonly string[]): Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export interface LimitReconcilerDeps {
  readonly node: Pick<NodeOperations, 'limit'>
  readonly volumes: Records<VolumeRecord>
  readonly mountRecords: Records<MountRecord>
  readonly locks: Locks
  readonly cgroups: WorkloadCgroups
  readonly clock: Clock
  readonly log: Logger
}

/** How long a new container may run without limits; a compromise with the cost of walking the cgroup tree. */
const SCAN_MS = 2_000

export function createLimitReconciler({
  node,
  volumes,
  mountRecords,
  locks,
  cgroups,
  clock,
  log,
}: LimitReconcilerDeps): LimitReconciler {
  const outcomes = new Map<VolumeId, Outcome>()
  const named = new Map<VolumeId, readonly string[]>()

  const cgroupsOf = async (id: VolumeId) => {
    const podUids = (mountRecords.get(id)?.published ?? []).flatMap(({ podUid }) => podUid ?? [])
    return [...new Set([...(named.get(id) ?? []), ...(await cgroups.find(podUids))])].sort()
  }

  async function enforce(volume: VolumeRecord): Promise<Enforcement> {
    const found = await cgroupsOf(volume.id)
    // A volume without limits is better than no volume: report the failure and retry at the next scan.
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

  /** Applies limits only where the cgroups have changed. */
  async function scan(): Promise<void> {
    for (const [id, outcome] of [...outcomes]) {
      const volume = volumes.get(id)
      if (!volume || locks.isHeld(id) || isUpToDate(outcome, await cgroupsOf(id))) continue
      await locks
        .run({ exclusive: [id] }, () => enforce(volume))
        .catch((error: Error) => {
          log.warn(
            { volume: id, because: error.message },
            'cannot update the limits of a volume; retrying at the next scan',
          )
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
  /** The cgroups of the last attempt. */
  readonly cgroups: readonly string[]
}

/** Whether the cgroups are unchanged and all of them are limited; an explicitly set cgroup may not exist yet. */
function isUpToDate({ enforcement, cgroups }: Outcome, now: readonly string[]): boolean {
  if (now.join('\n') !== cgroups.join('\n')) return false
  if (enforcement.is === 'not enforced') return now.length === 0
  return now.every((cgroup) =>
    enforcement.cgroups.some((holder) => cgroup === holder || cgroup.startsWith(`${holder}/`)),
  )
}
