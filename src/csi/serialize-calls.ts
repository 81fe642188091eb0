// A driver of which no two calls about one volume run at once: the protocol asks callers for that.
// Before a volume has an id its name stands for it, as in CreateVolume. Calls wait in the order they came; how many
// can wait is bounded by their callers, each of which waits for its own call.
import { type DescMethod, type Message, ScalarType } from '@bufbuild/protobuf'
import { type CallOptions, type CsiDriver, callDriver, createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'

export function serializeCalls(driver: CsiDriver): CsiDriver {
  /** For each subject with a call under way: when the last one in its line is over. */
  const lines = new Map<string, Promise<void>>()

  async function carry(method: DescMethod, request: Message, options: CallOptions): Promise<Message> {
    const subject = subjectOf(method, request)
    if (subject === undefined) return callDriver(driver, method, request, options)

    const before = lines.get(subject)
    let isOver = () => {}
    const turn = new Promise<void>((resolve) => {
      isOver = resolve
    })
    // Whoever gives up leaves the line without letting the next one pass those still ahead.
    const over = before ? before.then(() => turn) : turn
    lines.set(subject, over)
    void over.then(() => lines.get(subject) === over && lines.delete(subject))
    try {
      if (before) await untilAborted(before, method, options.signal)
      return await callDriver(driver, method, request, options)
    } finally {
      isOver()
    }
  }

  return createCsiDriver(carry)
}

/** The volume or snapshot a call is about; undefined if it is about none in particular. */
export function subjectOf(method: DescMethod, request: Message): string | undefined {
  for (const [field, kind] of SUBJECT_FIELDS) {
    const value = textIn(method, request, field)
    if (value) return `${kind} ${value}`
  }
  return undefined
}

const SUBJECT_FIELDS = [
  ['volume_id', 'volume'],
  ['source_volume_id', 'volume'], // CreateSnapshot: an operation on the volume it cuts
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
      reject(new CsiError('CANCELLED', `${method.name} was given up while an earlier call about its volume ran.`))
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    void before.then(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
  })
}
