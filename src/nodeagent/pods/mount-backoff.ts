// The mount backoff of each volume of each pod: from 0.5 s to about 2 min, as in the kubelet. A reconcile of the pod before
// the end of the backoff does not retry the volume. The state is kept in memory only.
import type { Clock } from '../../base/clock.ts'
import type { VolumeProblem } from '../volume-error.ts'

export interface Attempts {
  /** Returns the last error of the volume if its backoff has not ended. */
  pending(uid: string, volume: string): VolumeProblem | undefined
  failed(uid: string, volume: string, problem: VolumeProblem): void
  succeeded(uid: string, volume: string): void
  /** Returns the time until the next volume of the pod may be retried. */
  dueInMs(uid: string): number
  /** Returns the time since the first failure of the pod, or since the last call of `reported`. */
  waitedMs(uid: string): number
  /** Records that a timeout event was recorded for the pod. */
  reported(uid: string): void
  /** Ends all backoffs, for example after a driver was registered. */
  forgetDelays(): void
  forgetPod(uid: string): void
}

export const FIRST_RETRY_MS = 500
export const LAST_RETRY_MS = 122_000

interface Attempt {
  failures: number
  dueMs: number
  problem: VolumeProblem
}

export function createAttempts({ clock }: { readonly clock: Clock }): Attempts {
  const pods = new Map<string, { sinceMs: number; readonly volumes: Map<string, Attempt> }>()

  return {
    pending(uid, volume) {
      const attempt = pods.get(uid)?.volumes.get(volume)
      return attempt && clock.monotonicMs() < attempt.dueMs ? attempt.problem : undefined
    },
    failed(uid, volume, problem) {
      const pod = pods.get(uid) ?? { sinceMs: clock.monotonicMs(), volumes: new Map() }
      pods.set(uid, pod)
      // A wait has no backoff: the component that it waits for triggers a reconcile.
      const failures = problem.isWaiting ? 0 : (pod.volumes.get(volume)?.failures ?? 0) + 1
      const delayMs = problem.isWaiting ? 0 : Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS)
      pod.volumes.set(volume, { failures, problem, dueMs: clock.monotonicMs() + delayMs })
    },
    succeeded: (uid, volume) => void pods.get(uid)?.volumes.delete(volume),
    dueInMs(uid) {
      const failing = [...(pods.get(uid)?.volumes.values() ?? [])].filter(({ problem }) => !problem.isWaiting)
      return Math.max(0, Math.min(...failing.map(({ dueMs }) => dueMs - clock.monotonicMs()), LAST_RETRY_MS))
    },
    waitedMs(uid) {
      const pod = pods.get(uid)
      return pod ? clock.monotonicMs() - pod.sinceMs : 0
    },
    reported(uid) {
      const pod = pods.get(uid)
      if (pod) pod.sinceMs = clock.monotonicMs()
    },
    forgetDelays() {
      for (const { volumes } of pods.values()) for (const attempt of volumes.values()) attempt.dueMs = 0
    },
    forgetPod: (uid) => void pods.delete(uid),
  }
}
