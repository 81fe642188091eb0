// Ends one run of a container: the preStop hook, then the stop signal, then SIGKILL when the grace period is over. The agent
// calls `stop` again until the process has exited. A restarted agent begins with the hook again, as the kubelet does.
import { constants } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { Action, ActionResult, ActionTarget } from './actions.ts'

export interface RunStopperDeps {
  readonly clock: Clock
  runAction(target: ActionTarget, action: Action, timeoutMs: number): Promise<ActionResult>
  recordEvent(target: ActionTarget, event: EventDetails): void
  /** Called when the next step is due. */
  notify(uid: string): void
  notifyAfter(uid: string, ms: number): void
}

export interface StoppedRun {
  readonly key: string
  readonly uid: string
  readonly pid: number
  /** Undefined if the pod object no longer exists. No hook is run then. */
  readonly target?: ActionTarget
  readonly graceSeconds: number
  /** The event's message. */
  readonly message: string
}

/** A command has at least this time to exit after its hook, unless the grace period is 0. */
const GRACE_MS_MIN = 2_000
const KILL_POLL_INTERVAL_MS = 200
const POLL_INTERVAL_MS = 1_000

interface StopState {
  deadlineMs: number
  isHookRunning: boolean
  isSignalled: boolean
}

export function createRunStopper(deps: RunStopperDeps) {
  const { clock } = deps
  const states = new Map<string, StopState>()

  function begin({ key, uid, target, graceSeconds, message }: StoppedRun): StopState {
    const state = { deadlineMs: clock.monotonicMs() + graceSeconds * 1_000, isHookRunning: false, isSignalled: false }
    states.set(key, state)
    if (target) deps.recordEvent(target, { type: 'Normal', reason: 'Killing', message })
    const hook = target?.container.lifecycle?.preStop
    if (target && hook && graceSeconds > 0) {
      state.isHookRunning = true
      void runHook(target, hook, graceSeconds * 1_000).then(() => {
        state.isHookRunning = false
        state.deadlineMs = Math.max(state.deadlineMs, clock.monotonicMs() + GRACE_MS_MIN)
        deps.notify(uid)
      })
    }
    return state
  }

  async function runHook(target: ActionTarget, hook: Action, timeoutMs: number): Promise<void> {
    const result = await deps
      .runAction(target, hook, timeoutMs)
      .catch(({ message }: Error) => ({ isSuccess: false, output: message }))
    if (result.isSuccess) return
    const message = `PreStopHook failed: ${result.output}`
    deps.recordEvent(target, { type: 'Warning', reason: 'FailedPreStopHook', message })
  }

  return {
    /** Takes the next step to end a running process. */
    stop(run: StoppedRun): void {
      const state = states.get(run.key) ?? begin(run)
      // A later request can shorten the grace period.
      state.deadlineMs = Math.min(state.deadlineMs, clock.monotonicMs() + Math.max(run.graceSeconds * 1_000, 0))
      const remainingMs = state.deadlineMs - clock.monotonicMs()
      if (remainingMs <= 0) {
        signalGroup(run.pid, 'SIGKILL')
        deps.notifyAfter(run.uid, KILL_POLL_INTERVAL_MS)
        return
      }
      if (!state.isHookRunning && !state.isSignalled) {
        state.isSignalled = true
        signalGroup(run.pid, run.target?.container.lifecycle?.stopSignal ?? 'SIGTERM')
      }
      deps.notifyAfter(run.uid, Math.min(POLL_INTERVAL_MS, remainingMs))
    },
    forget: (key: string) => void states.delete(key),
  }
}

const RTMIN = 34
const RTMAX = 64

/** Returns the number of a signal. Node.js knows no names of real-time signals. */
export function signalNumber(name: string): number {
  const match = /^SIGRT(MIN|MAX)([+-]\d+)?$/.exec(name)
  if (match) return (match[1] === 'MIN' ? RTMIN : RTMAX) + Number(match[2] ?? 0)
  return constants.signals[(name === 'SIGCLD' ? 'SIGCHLD' : name) as NodeJS.Signals]
}

/** Sends the signal to the process group. Ignores processes that have already exited. */
export function signalGroup(pid: number, signal: string): void {
  sendSignal(-pid, signal)
}

export function sendSignal(pid: number, signal: string): void {
  try {
    process.kill(pid, signalNumber(signal))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
