// Serializes the calls for each volume or snapshot: the CSI specification requires callers to have at most one in flight per
// volume. CreateVolume has no volume id and is serialized by name. Waiting calls run in FIFO order.
import { type DescMethod, type Message, ScalarType } from '@bufbuild/protobuf'
import { type CsiDriver, callDriver, createServiceClients } from './driver.ts'
import { CsiError } from './errors.ts'
import type { CallOptions } from './transport.ts'

export function serializeCalls(driver: CsiDriver): CsiDriver {
  /** By subject, a promise that resolves when its last queued call has completed. */
  const queues = new Map<string, Promise<void>>()

  async function send(method: DescMethod, request: Message, options: CallOptions): Promise<Message> {
    const subject = subjectOf(method, request)
    if (subject === undefined) return callDriver(driver, method, request, options)

    const previousCall = queues.get(subject)
    let complete = () => {}
    const callCompletion = new Promise<void>((resolve) => {
      complete = resolve
    })
    // If a waiting call is cancelled, the next one still waits for the calls before it.
    const queueCompletion = previousCall ? previousCall.then(() => callCompletion) : callCompletion
    queues.set(subject, queueCompletion)
    void queueCompletion.then(() => queues.get(subject) === queueCompletion && queues.delete(subject))
    try {
      if (previousCall) await waitUnlessAborted(previousCall, method, options.signal)
      return await callDriver(driver, method, request, options)
    } finally {
      complete()
    }
  }

  return createServiceClients(send)
}

/** Returns the volume or snapshot that a call operates on, if any. */
export function subjectOf(method: DescMethod, request: Message): string | undefined {
  for (const [field, kind] of SUBJECT_FIELDS) {
    const value = stringFieldOf(method, request, field)
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

function stringFieldOf(method: DescMethod, request: Message, name: string): string {
  const field = method.input.fields.find((candidate) => candidate.name === name)
  if (field?.fieldKind !== 'scalar' || field.scalar !== ScalarType.STRING) return ''
  return (request as unknown as Record<string, string>)[field.localName] ?? ''
}

function waitUnlessAborted(
  previous: Promise<void>,
  method: DescMethod,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (!signal) return previous
  return new Promise((resolve, reject) => {
    const abort = () =>
      reject(
        new CsiError(
          'CANCELLED',
          `${method.name} was cancelled while it waited for an earlier call on the same volume or snapshot.`,
        ),
      )
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    void previous.then(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
  })
}
