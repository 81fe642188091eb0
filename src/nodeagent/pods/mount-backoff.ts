// The mount backoff of each volume of each pod: from 0.5 s to about 2 min, as in the kubelet. A reconcile of the pod before
// the end of the backoff does not retry the volume. The state is kept in memory only.
import type { Clock } from '../../base/clock.ts'
import type { VolumeError } from '../volume-error.ts'

export interface MountBackoff {
  /** Returns the volume's last error if its backoff has not ended. */
  pendingError(uid: string, volume: string): VolumeError | undefined
  recordFailure(uid: string, volume: string, error: VolumeError): void
  recordSuccess(uid: string, volume: string): void
  /** Returns the time until the next failed volume of the pod may be retried, at most RETRY_MS_MAX. */
  retryInMs(uid: string): number
  /** Returns the time since the first failure of the pod, or since the last call of `resetWait`. */
  waitedMs(uid: string): number
  /** Restarts the measurement of the waiting time, after a timeout event was recorded. */
  resetWait(uid: string): void
  /** Ends the backoffs of a pod's volumes. The next failure starts with the shortest backoff. */
  end(uid: string): void
  /** Ends all backoffs, for example after a driver was registered. */
  endAll(): void
  removePod(uid: string): void
}

export const RETRY_MS_MIN = 500
export const RETRY_MS_MAX = 122_000

interface VolumeBackoff {
  failures: number
  dueMs: number
  error: VolumeError
}

export function createMountBackoff({ clock }: { readonly clock: Clock }): MountBackoff {
  const pods = new Map<string, { sinceMs: number; readonly volumes: Map<string, VolumeBackoff> }>()

  return {
    pendingError(uid, volume) {
      const backoff = pods.get(uid)?.volumes.get(volume)
      return backoff && clock.monotonicMs() < backoff.dueMs ? backoff.error : undefined
    },
    recordFailure(uid, volume, error) {
      const pod = pods.get(uid) ?? { sinceMs: clock.monotonicMs(), volumes: new Map() }
      pods.set(uid, pod)
      // A wait has no backoff: the component that it waits for triggers a reconcile.
      const failures = error.isWaiting ? 0 : (pod.volumes.get(volume)?.failures ?? 0) + 1
      const delayMs = error.isWaiting ? 0 : Math.min(RETRY_MS_MIN * 2 ** (failures - 1), RETRY_MS_MAX)
      pod.volumes.set(volume, { failures, error, dueMs: clock.monotonicMs() + delayMs })
    },
    recordSuccess: (uid, volume) => void pods.get(uid)?.volumes.delete(volume),
    retryInMs(uid) {
      const failingVolumes = [...(pods.get(uid)?.volumes.values() ?? [])].filter(({ error }) => !error.isWaiting)
      return Math.max(0, Math.min(...failingVolumes.map(({ dueMs }) => dueMs - clock.monotonicMs()), RETRY_MS_MAX))
    },
    waitedMs(uid) {
      const pod = pods.get(uid)
      return pod ? clock.monotonicMs() - pod.sinceMs : 0
    },
    resetWait(uid) {
      const pod = pods.get(uid)
      if (pod) pod.sinceMs = clock.monotonicMs()
    },
    end(uid) {
      for (const backoff of pods.get(uid)?.volumes.values() ?? []) {
        backoff.dueMs = 0
        backoff.failures = 0
      }
    },
    endAll() {
      for (const { volumes } of pods.values()) for (const backoff of volumes.values()) backoff.dueMs = 0
    },
    removePod: (uid) => void pods.delete(uid),
  }
}
