// Serializes the calls of each volume, as the CSI specification requires of callers: at most one is in flight.
// CreateVolume, which has no volume id yet, is serialized by name. Waiting calls run in FIFO order; their number is
// bounded by the number of callers, each of which waits for its own call.
import { type DescMethod, type Message, ScalarType } from '@bufbuild/protobuf'
import { type CallOptions, type CsiDriver, callDriver, createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'

export function serializeCalls(driver: CsiDriver): CsiDriver {
  /** For each subject with calls: settles when its last queued call has completed. */
  const queues = new Map<string, Promise<void>>()

  async function carry(method: DescMethod, request: Message, options: CallOptions): Promise<Message> {
    const subject = subjectOf(method, request)
    if (subject === undefined) return callDriver(driver, method, request, options)

    const before = queues.get(subject)
    let complete = () => {}
    const own = new Promise<void>((resolve) => {
      complete = resolve
    })
    // A cancelled call leaves the queue, but the next one still waits for those before it.
    const completed = before ? before.then(() => own) : own
    queues.set(subject, completed)
    void completed.then(() => queues.get(subject) === completed && queues.delete(subject))
    try {
      if (before) await untilAborted(before, method, options.signal)
      return await callDriver(driver, method, request, options)
    } finally {
      complete()
    }
  }

  return createCsiDriver(carry)
}

/** The volume or snapshot that a call operates on, if any. */
export function subjectOf(method: DescMethod, request: Message): string | undefined {
  for (const [field, kind] of SUBJECT_FIELDS) {
    const value = textIn(method, request, field)
    if (value) return `${kind} ${value}`
  }
  return undefined
}

const SUBJECT_FIELDS = [
  ['volume_id', 'volume'],
  ['source_volume_id', 'volume'], // CreateSnapshot is an operation on its source volume
  ['snapshot_id', 'snapshot'],
  ['name', 'name'],
] as const

function textIn(method: DescMethod, request: Message, name: string): string {
  const field = method.input.fields.find((candidate) => candidate.name === name)
  if (field?.fieldKind !== 'scalar' || field.scalar !== ScalarType.STRING) return ''
  return (request as unknown as Record<string, string>)[field.localName] ?? ''
}

function untilAborted(before: Promise<void>, method: DescMethod, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return before
  return new Promise((resolve, reject) => {
    const abort = () =>
      reject(
        new CsiError('CANCELLED', `${method.name} was cancelled while it waited for an earlier call on its volume.`),
      )
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    void before.then(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
  })
}
