// Runs the probes of containers: the startup probe first, then the liveness and the readiness probe, each at its own interval.
// Keeps their results in memory: a new agent continues with the results that the pod's status contains.
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { ActionResult, ActionTarget } from './actions.ts'

type Probe = NonNullable<Container['livenessProbe']>
export type ProbeKind = 'Startup' | 'Liveness' | 'Readiness'

export interface ProbeResults {
  readonly isStarted: boolean
  readonly isReady: boolean
  /** The probe because of which the container must be ended. */
  readonly failed?: { readonly kind: ProbeKind; readonly graceSeconds?: number }
}

export interface ProbeDeps {
  readonly clock: Clock
  runAction(target: ActionTarget, probe: Probe, timeoutMs: number): Promise<ActionResult>
  /** Called after a result has changed. */
  onChange(target: ActionTarget): void
  recordEvent(target: ActionTarget, event: EventDetails): void
}

export interface Probes {
  /** Starts the probes of a run, unless they have been started. */
  start(runKey: string, target: ActionTarget, options: ProbeOptions): void
  stop(runKey: string): void
  read(runKey: string): ProbeResults
}

export interface ProbeOptions {
  /** Wall-clock time at which the container was started. */
  readonly startedMs: number
  /** The results of an earlier agent. */
  readonly initial?: { readonly isStarted: boolean; readonly isReady: boolean }
}

const PERIOD_SECONDS = 10
const TIMEOUT_SECONDS = 1
const FAILURE_THRESHOLD = 3
/** The results of a container that has not been probed yet. */
const UNKNOWN: ProbeResults = { isStarted: false, isReady: false }

export function createProbes(deps: ProbeDeps): Probes {
  const { clock } = deps
  const runs = new Map<string, { readonly abort: AbortController; results: ProbeResults }>()

  return {
    start(runKey, target, { startedMs, initial }) {
      if (runs.has(runKey)) return
      const { startupProbe, livenessProbe, readinessProbe } = target.container
      const abort = new AbortController()
      const { signal } = abort
      const isStarted = !startupProbe || (initial?.isStarted ?? false)
      const run = {
        abort,
        results: { isStarted, isReady: isStarted && (!readinessProbe || (initial?.isReady ?? false)) },
      }
      runs.set(runKey, run)
      const update = (results: Partial<ProbeResults>) => {
        if (signal.aborted) return
        run.results = { ...run.results, ...results }
        deps.onChange(target)
      }
      const end = (kind: ProbeKind, probe: Probe) => {
        const graceSeconds = probe.terminationGracePeriodSeconds
        update({ isReady: false, failed: { kind, ...(graceSeconds === undefined ? {} : { graceSeconds }) } })
        abort.abort()
      }
      const elapsedMs = Math.max(0, clock.nowMs() - startedMs)
      const startOthers = () => {
        if (livenessProbe) repeat('Liveness', livenessProbe, (isSuccess) => isSuccess || end('Liveness', livenessProbe))
        if (readinessProbe) repeat('Readiness', readinessProbe, (isReady) => update({ isReady }))
      }
      const repeat = (kind: ProbeKind, probe: Probe, onResult: (isSuccess: boolean) => void, until?: () => boolean) =>
        void probeRepeatedly(target, { kind, probe, elapsedMs, signal, onResult, until: until ?? (() => false) }, deps)
      if (isStarted) startOthers()
      else {
        repeat(
          'Startup',
          startupProbe,
          (isSuccess) => {
            if (!isSuccess) return end('Startup', startupProbe)
            update({ isStarted: true, isReady: !readinessProbe })
            startOthers()
          },
          () => run.results.isStarted,
        )
      }
    },
    stop(runKey) {
      runs.get(runKey)?.abort.abort()
      runs.delete(runKey)
    },
    read: (runKey) => runs.get(runKey)?.results ?? UNKNOWN,
  }
}

interface Repetition {
  readonly kind: ProbeKind
  readonly probe: Probe
  /** Time since the start of the container. */
  readonly elapsedMs: number
  readonly signal: AbortSignal
  /** Called when the number of equal results in a row reaches the threshold. */
  onResult(isSuccess: boolean): void
  /** Whether no further check is needed. */
  until(): boolean
}

async function probeRepeatedly(target: ActionTarget, repetition: Repetition, deps: ProbeDeps): Promise<void> {
  const { kind, probe, elapsedMs, signal, onResult, until } = repetition
  const { initialDelaySeconds = 0, periodSeconds, timeoutSeconds, successThreshold, failureThreshold } = probe
  const thresholds = { success: successThreshold || 1, failure: failureThreshold || FAILURE_THRESHOLD }
  let previous: boolean | undefined
  let count = 0
  let delayMs = Math.max(0, initialDelaySeconds * 1_000 - elapsedMs)
  while (!signal.aborted && !until()) {
    if (delayMs > 0) await deps.clock.sleep(delayMs, signal).catch(() => {}) // rejects when the signal is aborted
    if (signal.aborted) return
    const isSuccess = await check()
    if (signal.aborted) return
    if (isSuccess !== undefined) {
      count = isSuccess === previous ? count + 1 : 1
      previous = isSuccess
      if (count === (isSuccess ? thresholds.success : thresholds.failure)) onResult(isSuccess)
    }
    delayMs = (periodSeconds || PERIOD_SECONDS) * 1_000
  }

  /** Returns undefined if the probe could not be run. */
  async function check(): Promise<boolean | undefined> {
    const record = (message: string) => {
      if (!signal.aborted) deps.recordEvent(target, { type: 'Warning', reason: 'Unhealthy', message })
    }
    try {
      const { isSuccess, output } = await deps.runAction(target, probe, (timeoutSeconds || TIMEOUT_SECONDS) * 1_000)
      if (!isSuccess) record(`${kind} probe failed: ${output}`)
      return isSuccess
    } catch (error) {
      record(`${kind} probe errored and resulted in unknown state: ${(error as Error).message}`)
      return undefined
    }
  }
}
