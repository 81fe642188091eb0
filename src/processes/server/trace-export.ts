// Exports traces of claims to an OpenTelemetry collector over OTLP/HTTP in JSON: a trace per claim, with a span from its creation
// to its binding, one for each step and one for each driver call. The trace ID is the claim's UID without dashes.
import { createHash } from 'node:crypto'
import { Counter, type Registry } from 'prom-client'
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { FollowedClaim, Journal, ReachedStep } from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'

export interface TraceExportOptions {
  /** The URL for traces, such as http://collector:4318/v1/traces. */
  readonly url: string
  readonly steps: Journal['steps']
  readonly version: string
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** The kind of a span in OTLP: 1 is internal, 3 is client. */
  readonly kind: 1 | 3
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  /** Code 2 is an error. */
  readonly status?: { readonly code: 2; readonly message: string }
}

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string }
}

/** How long spans are collected before they are sent. */
const BATCH_MS = 2_000
const BATCH_SPANS_MAX = 500
/** Beyond this number of waiting spans, new ones are dropped. */
const PENDING_SPANS_MAX = 5_000
const TIMEOUT_MS = 10_000
/** Minimum time between log entries about a collector that does not accept traces. */
const LOG_INTERVAL_MS = 60_000

/** Exports until the signal is aborted. */
export function exportTraces({ url, steps, version, registry, clock, log, signal }: TraceExportOptions): void {
  const counter = new Counter({
    name: 'stowage_trace_spans_total',
    help: 'Spans of traces by result: exported, or dropped because the collector rejected them or did not accept them in time.',
    labelNames: ['result'],
    registers: [registry],
  })
  let pending: Span[] = []
  let isScheduled = false
  let isSending = false
  let loggedAtMs = Number.NEGATIVE_INFINITY

  function add(span: Span): void {
    if (signal.aborted) return
    if (pending.length >= PENDING_SPANS_MAX) {
      counter.inc({ result: 'dropped' })
      return
    }
    pending.push(span)
    if (isScheduled) return
    isScheduled = true
    clock.after(BATCH_MS, () => {
      isScheduled = false
      void flush()
    })
  }

  async function flush(): Promise<void> {
    if (isSending) return
    isSending = true
    while (pending.length > 0 && !signal.aborted) {
      const batch = pending.slice(0, BATCH_SPANS_MAX)
      pending = pending.slice(batch.length)
      const problem = await send(url, formatBody(batch, version), signal)
      counter.inc({ result: problem ? 'dropped' : 'exported' }, batch.length)
      if (!problem || clock.monotonicMs() - loggedAtMs < LOG_INTERVAL_MS) continue
      loggedAtMs = clock.monotonicMs()
      log.warn({ url, reason: problem }, 'the collector did not accept traces; they are dropped')
    }
    isSending = false
  }

  steps.subscribe({
    onStep(step) {
      add(toStepSpan(step))
      if (step.step === 'Bound') add(toClaimSpan(step))
    },
    onCall: (claim, call) => add(toCallSpan(claim, call)),
  })
}

/** Returns undefined if the collector accepted the spans, otherwise the reason. */
async function send(url: string, body: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    await response.arrayBuffer() // so that the connection can be reused
    return response.ok ? undefined : `HTTP status ${response.status}`
  } catch (error) {
    const { message, cause } = error as Error
    return cause instanceof Error ? `${message}: ${cause.message}` : message
  }
}

const formatBody = (spans: readonly Span[], version: string): string =>
  JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [attribute('service.name', 'stowage'), attribute('service.version', version)] },
        scopeSpans: [{ scope: { name: 'stowage', version }, spans }],
      },
    ],
  })

const attribute = (key: string, stringValue: string): Attribute => ({ key, value: { stringValue } })

const traceIdOf = ({ uid }: FollowedClaim): string => uid.replaceAll('-', '')
const rootSpanIdOf = (claim: FollowedClaim): string => traceIdOf(claim).slice(0, 16)

const spanIdOf = (claim: FollowedClaim, text: string): string =>
  createHash('sha256').update(`${claim.uid} ${text}`).digest('hex').slice(0, 16)

const attributesOf = ({ namespace, name, uid }: FollowedClaim): Attribute[] => [
  attribute('k8s.namespace.name', namespace),
  attribute('k8s.persistentvolumeclaim.name', name),
  attribute('k8s.persistentvolumeclaim.uid', uid),
]

const timesOf = (startMs: number, endMs: number) => ({
  startTimeUnixNano: toNanoseconds(startMs),
  endTimeUnixNano: toNanoseconds(endMs),
})

/** Returns a string, because a number cannot hold nanoseconds since the epoch exactly. */
const toNanoseconds = (ms: number): string => String(BigInt(Math.round(ms * 1_000)) * 1_000n)

const toClaimSpan = ({ claim, atMs }: ReachedStep): Span => ({
  traceId: traceIdOf(claim),
  spanId: rootSpanIdOf(claim),
  name: 'claim',
  kind: 1,
  ...timesOf(claim.createdMs, atMs),
  attributes: attributesOf(claim),
})

const toStepSpan = ({ claim, step, sinceMs, atMs }: ReachedStep): Span => ({
  traceId: traceIdOf(claim),
  spanId: spanIdOf(claim, step),
  parentSpanId: rootSpanIdOf(claim),
  name: step.toLowerCase(),
  kind: 1,
  ...timesOf(sinceMs, atMs),
  attributes: attributesOf(claim),
})

function toCallSpan(claim: FollowedClaim, call: Activity): Span {
  const { driver = '', method = '', start, durationMs, result, message = '' } = call
  const startMs = Date.parse(start)
  return {
    traceId: traceIdOf(claim),
    spanId: spanIdOf(claim, `${method} ${start}`),
    parentSpanId: rootSpanIdOf(claim),
    name: method,
    kind: 3,
    ...timesOf(startMs, startMs + durationMs),
    attributes: [...attributesOf(claim), attribute('csi.driver', driver), attribute('rpc.grpc.status', result)],
    ...(result === 'OK' ? {} : { status: { code: 2, message } }),
  }
}
