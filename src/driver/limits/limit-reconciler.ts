// Enforces the IO limits of staged volumes. Cgroups that are created later, for example when a container starts, are limited
// when a watch of the hierarchy reports them, or by a periodic scan.
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
  /** Applies the record's limits. The caller must hold the lock of the volume. */
  enforce(volume: VolumeRecord): Promise<Enforcement>
  /** Must be called after the volume is unstaged. */
  remove(id: VolumeId): void
  /** Returns the result of the last attempt, or undefined for a volume that has no limits or is not staged. */
  enforcement(id: VolumeId): Enforcement | undefined
  /** Sets cgroups in addition to those found by patterns and pod UIDs. */
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

/** The scan interval if the hierarchy cannot be watched, or if the last scan was incomplete. */
const SCAN_INTERVAL_MS = 2_000
/** The scan interval if the hierarchy is watched. The scan finds cgroups whose event was lost. */
const RESYNC_INTERVAL_MS = 60_000

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
  const explicitCgroups = new Map<VolumeId, readonly string[]>()

  const findCgroups = async (id: VolumeId) => {
    const podUids = (mountRecords.get(id)?.published ?? []).flatMap(({ podUid }) => podUid ?? [])
    return [...new Set([...(explicitCgroups.get(id) ?? []), ...(await cgroups.find(podUids))])].sort()
  }

  async function enforce(volume: VolumeRecord): Promise<Enforcement> {
    const cgroupPaths = await findCgroups(volume.id)
    // A failure must not prevent the use of the volume. It is reported and retried at the next scan.
    const enforcement = await node
      .limit(volume, cgroupPaths)
      .catch((error: Error): Enforcement => ({ is: 'not enforced', message: error.message }))
    if (hasLimits(volume.limits)) {
      if (enforcement.is === 'not enforced' && outcomes.get(volume.id)?.enforcement.is !== 'not enforced') {
        log.warn({ volume: volume.id, reason: enforcement.message }, 'the limits of a volume are not enforced')
      }
      outcomes.set(volume.id, { enforcement, cgroups: cgroupPaths })
    } else outcomes.delete(volume.id)
    return enforcement
  }

  /** Applies the limits of volumes whose cgroups have changed or are not all limited. Returns whether a volume was busy or its limits failed. */
  async function scan(): Promise<boolean> {
    let isIncomplete = false
    for (const [id, outcome] of [...outcomes]) {
      const volume = volumes.get(id)
      if (!volume || isUpToDate(outcome, await findCgroups(id))) continue
      if (locks.isHeld(id)) {
        isIncomplete = true
        continue
      }
      const isEnforced = await locks
        .run({ exclusive: [id] }, () => enforce(volume))
        .then(
          ({ is }) => is === 'enforced',
          (error: Error) => {
            log.warn(
              { volume: id, reason: error.message },
              'cannot update the limits of a volume; retrying at the next scan',
            )
            return false
          },
        )
      if (!isEnforced && (await findCgroups(id)).length > 0) isIncomplete = true
    }
    return isIncomplete
  }

  return {
    enforce,
    remove(id) {
      outcomes.delete(id)
      explicitCgroups.delete(id)
    },
    enforcement: (id) => outcomes.get(id)?.enforcement,
    async setWorkloadCgroups(id, paths) {
      explicitCgroups.set(id, [...paths])
      await scan()
    },
    async run(signal) {
      let hasNewCgroups = false
      let wake = () => {}
      const watch = await cgroups.watch?.(() => {
        hasNewCgroups = true
        wake()
      })
      try {
        while (!signal.aborted) {
          hasNewCgroups = false
          const isIncomplete = await scan()
          const intervalMs = watch && !isIncomplete ? RESYNC_INTERVAL_MS : SCAN_INTERVAL_MS
          if (hasNewCgroups) continue
          const sleepAbort = new AbortController()
          wake = () => sleepAbort.abort()
          await clock.sleep(intervalMs, AbortSignal.any([signal, sleepAbort.signal])).catch(() => {})
        }
      } finally {
        watch?.close()
      }
    },
  }
}

interface Outcome {
  readonly enforcement: Enforcement
  /** The cgroups of the last attempt. */
  readonly cgroups: readonly string[]
}

/** Returns whether the cgroups are unchanged and all limited. An explicitly set cgroup may not exist yet. */
function isUpToDate({ enforcement, cgroups }: Outcome, currentCgroups: readonly string[]): boolean {
  if (currentCgroups.join('\n') !== cgroups.join('\n')) return false
  if (enforcement.is === 'not enforced') return currentCgroups.length === 0
  return currentCgroups.every((cgroup) =>
    enforcement.cgroups.some((limitedCgroup) => cgroup === limitedCgroup || cgroup.startsWith(`${limitedCgroup}/`)),
  )
}
