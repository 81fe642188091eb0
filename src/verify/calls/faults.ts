// Injects faults between the driver and the controllers: lost replies, repeated, concurrent, cancelled and slow calls, and a
// killed driver. Each fault affects every method that changes a volume, once per volume; the retry of the
// controllers or the node agent runs without a fault.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { Random } from '../../base/clock.ts'
import type { CreateVolumeResponse } from '../../csi/gen/csi_pb.js'
import {
  type CallOptions,
  CsiError,
  type CsiFailureCode,
  subjectOf,
  type Transport,
  VOLUME_CHANGES,
} from '../../csi/index.ts'
import type { DriverControl } from '../check.ts'
import type { VirtualClock } from '../virtual-clock.ts'
import type { CallLog } from './call-log.ts'
import { attempt, describeOutcome } from './outcomes.ts'

export interface FaultDeps {
  readonly send: Transport
  readonly clock: VirtualClock
  readonly random: Random
  readonly log: CallLog
  readonly driverProcess: DriverControl | undefined
  /** How long, in real time, the driver may return ABORTED or UNAVAILABLE before virtual time continues. */
  readonly retryForMs: number
  /** Waits in real time. */
  pause(ms: number): Promise<void>
  /** Reports a violation of the check's rule. */
  report(problem: string): void
}

/** Sends one call with a fault. */
type FaultyCall = (deps: FaultDeps, method: DescMethod, request: Message, options: CallOptions) => Promise<Message>

export type FaultName = keyof typeof FAULTS

/** The default timeout of a connection to a driver. */
const TIMEOUT_MS = 10_000
/** The maximum real time between sending a call and cancelling it or killing the driver. */
const INTERRUPT_MS_MAX = 5

const FAULTS = {
  'reply lost': async ({ clock, send, log }, method, request, options) => {
    await clock.hold(send(method, request, options))
    log.noteFault(request, 'verify dropped this reply')
    return failCall('UNAVAILABLE', `the reply of ${method.name} was lost`)
  },

  'sent twice': async ({ clock, send, log, report }, method, request, options) => {
    const first = await clock.hold(send(method, request, options))
    const second = await clock.hold(attempt(send(method, request, options)))
    log.noteFault(request, 'verify repeated this call')
    if (second.code !== 'OK')
      report(`${method.name} succeeded, and the repeated call returned ${describeOutcome(second)}`)
    else reportDifference({ method, first, second: second.response, report })
    return second.response ?? first
  },

  'sent concurrently': async ({ clock, send, log, report }, method, request, options) => {
    const outcomes = await clock.hold(
      Promise.all([attempt(send(method, request, options)), attempt(send(method, request, options))]),
    )
    log.noteFault(request, 'verify sent this call twice at the same time')
    for (const outcome of outcomes)
      if (outcome.code !== 'OK' && outcome.code !== 'ABORTED')
        report(
          `two concurrent calls of ${method.name} for one volume: expected OK or ABORTED, got ${describeOutcome(outcome)}`,
        )
    const [first, second] = outcomes
    if (first.code === 'OK' && second.code === 'OK')
      reportDifference({ method, first: first.response, second: second.response, report })
    const response = first.response ?? second.response
    return response ?? failCall('ABORTED', first.message)
  },

  cancelled: async ({ clock, send, log, random, pause }, method, request, options) => {
    const cancel = new AbortController()
    const call = attempt(send(method, request, { ...options, signal: cancel.signal }))
    await clock.hold(pause(random() * INTERRUPT_MS_MAX))
    cancel.abort()
    await clock.hold(call)
    log.noteFault(request, 'verify cancelled this call')
    return failCall('CANCELLED', `${method.name} was cancelled`)
  },

  slow: async ({ clock, send, log }, method, request, options) => {
    await clock.hold(send(method, request, options))
    log.noteFault(request, 'verify delayed this reply until the caller gave up')
    await clock.sleep(options.timeoutMs ?? TIMEOUT_MS, options.signal).catch(() => {})
    return failCall('DEADLINE_EXCEEDED', `${method.name} did not respond in time`)
  },

  'killed after': async ({ clock, send, log, driverProcess, report }, method, request, options) => {
    await clock.hold(send(method, request, options))
    log.noteFault(request, 'verify killed the driver after this call')
    await clock.hold(Promise.resolve(driverProcess?.kill()))
    await clock.hold(startAgain(driverProcess, `after ${method.name}`, report))
    return failCall('UNAVAILABLE', `the driver was killed after ${method.name}`)
  },

  'killed during': async ({ clock, send, log, random, pause, driverProcess, report }, method, request, options) => {
    const call = attempt(send(method, request, options))
    await clock.hold(pause(random() * INTERRUPT_MS_MAX))
    await clock.hold(Promise.resolve(driverProcess?.kill()))
    await clock.hold(call)
    log.noteFault(request, 'verify killed the driver during this call')
    await clock.hold(startAgain(driverProcess, `during ${method.name}`, report))
    return failCall('UNAVAILABLE', `the driver was killed during ${method.name}`)
  },
} as const satisfies Record<string, FaultyCall>

/** Returns the transport for the controllers. Calls without a fault only stop virtual time, and wait if the driver is busy. */
export function injectFault(fault: FaultName | undefined, deps: FaultDeps): Transport {
  const affectedCalls = new Set<string>()
  const sendOrWait = createWaitingTransport(deps)
  return (method, request, options) => {
    const subject = subjectOf(method, request)
    const key = `${method.name} ${subject}`
    if (!fault || !VOLUME_CHANGES.has(method.name) || affectedCalls.has(key))
      return sendOrWait(method, request, options)
    affectedCalls.add(key)
    return FAULTS[fault](deps, method, request, options)
  }
}

const BUSY_WAIT_MS = 20
const BUSY_WAIT_MS_MAX = 1_000

/**
 * Returns a transport that waits in real time after ABORTED and UNAVAILABLE: the driver is still starting or working on an earlier
 * call, and the controllers' backoff takes no real time.
 */
function createWaitingTransport({ clock, send, pause, retryForMs }: FaultDeps): Transport {
  const waitedMsBySubject = new Map<string, number>()
  return (method, request, options) =>
    clock.hold(
      (async () => {
        const subject = subjectOf(method, request) ?? ''
        try {
          const response = await send(method, request, options)
          waitedMsBySubject.delete(subject)
          return response
        } catch (error) {
          if (error instanceof CsiError && (error.codeName === 'ABORTED' || error.codeName === 'UNAVAILABLE')) {
            const waitedMs = waitedMsBySubject.get(subject) ?? 0
            const waitMs = Math.min(waitedMs + BUSY_WAIT_MS, BUSY_WAIT_MS_MAX, retryForMs - waitedMs)
            waitedMsBySubject.set(subject, waitedMs + waitMs)
            await pause(waitMs)
          }
          throw error
        }
      })(),
    )
}

interface RepeatedResponses {
  readonly method: DescMethod
  readonly first: Message
  readonly second: Message
  report(problem: string): void
}

/** Reports equal CreateVolume calls that returned different volumes. */
function reportDifference({ method, first, second, report }: RepeatedResponses): void {
  if (method.name !== 'CreateVolume') return
  const [firstId, secondId] = [first, second].map((response) => (response as CreateVolumeResponse).volume?.volumeId)
  if (firstId !== secondId)
    report(`two CreateVolume calls with the same name returned the volumes ${firstId} and ${secondId}`)
}

/** Starts the killed driver. Reports a violation if it does not start. */
async function startAgain(
  driverProcess: DriverControl | undefined,
  moment: string,
  report: FaultDeps['report'],
): Promise<void> {
  await driverProcess
    ?.start()
    .catch((error: Error) => report(`the driver was killed ${moment} and cannot be started again: ${error.message}`))
}

function failCall(code: CsiFailureCode, message: string): never {
  throw new CsiError(code, message)
}
