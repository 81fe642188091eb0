// Records every call of a check with its request, response and times, so that the report of a violation can show the calls.
// Secrets are redacted when the log is read.
import type { DescMethod, JsonValue, Message } from '@bufbuild/protobuf'
import { type CsiCode, createSecretMask, findSecrets, redact } from '../../csi/index.ts'

export interface LoggedCall {
  /** The position of the call in its check, starting with 1. */
  readonly number: number
  /** The method's name, such as `CreateVolume`. */
  readonly method: string
  readonly request: JsonValue
  readonly code: CsiCode
  /** Absent if the call failed. */
  readonly response?: JsonValue
  /** The error message. Absent if the call succeeded. */
  readonly message?: string
  /** When the call started, in milliseconds since the start of the check. */
  readonly atMs: number
  readonly durationMs: number
  /** The fault that verify injected. */
  readonly fault?: string
}

export interface CallLog {
  /** Drops all calls at the start of a check. */
  reset(nowMs: number): void
  begin(method: DescMethod, request: Message, nowMs: number): OpenCall
  /** Records an injected fault on the last call with this request. */
  noteFault(request: Message, fault: string): void
  calls(): LoggedCall[]
  /** Redacts the secrets of all calls in this run. */
  mask(text: string): string
}

interface OpenCall {
  succeed(response: Message, nowMs: number): void
  fail(code: CsiCode, message: string, nowMs: number): void
}

/**
 * Beyond this number, the oldest calls are dropped. A check makes fewer calls unless the driver keeps failing until the timeout.
 */
const CALLS_MAX = 2_000

interface Entry {
  readonly number: number
  readonly method: DescMethod
  readonly request: Message
  readonly startMs: number
  endMs?: number
  code?: CsiCode
  response?: Message
  message?: string
  fault?: string
}

export function createCallLog(): CallLog {
  const secretMask = createSecretMask()
  let entries: Entry[] = []
  let count = 0
  let checkStartMs = 0

  const toCall = (entry: Entry): LoggedCall => ({
    number: entry.number,
    method: entry.method.name,
    request: redact(entry.method.input, entry.request, secretMask),
    code: entry.code ?? 'UNKNOWN',
    ...(entry.response ? { response: redact(entry.method.output, entry.response, secretMask) } : {}),
    ...(entry.message === undefined ? {} : { message: secretMask.mask(entry.message) }),
    atMs: Math.round(entry.startMs - checkStartMs),
    durationMs: Math.round((entry.endMs ?? entry.startMs) - entry.startMs),
    ...(entry.fault ? { fault: entry.fault } : {}),
  })

  return {
    reset(nowMs) {
      entries = []
      count = 0
      checkStartMs = nowMs
    },
    begin(method, request, nowMs) {
      secretMask.add(findSecrets(method.input, request))
      const entry: Entry = { number: ++count, method, request, startMs: nowMs }
      entries.push(entry)
      if (entries.length > CALLS_MAX) entries = entries.slice(-CALLS_MAX / 2)
      return {
        succeed(response, endMs) {
          Object.assign(entry, { code: 'OK', response, endMs })
        },
        fail(code, message, endMs) {
          Object.assign(entry, { code, message, endMs })
        },
      }
    },
    noteFault(request, fault) {
      const entry = entries.findLast((candidate) => candidate.request === request)
      if (entry) entry.fault = fault
    },
    calls: () => entries.map(toCall),
    mask: (text) => secretMask.mask(text),
  }
}
