// Keeps the last hour of rates and latencies in a ring: one sample every ten seconds from the operations and metrics of a Stowage
// server, or every minute while none of them is available. Values that a server does not provide are null, and `sources` has the
// reason.
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Transport } from '../../client/http/transport.ts'
import { parseResponse } from '../../client/http/wire.ts'
import type { CsiCallSample, Feature, HistoryResponse, HistorySample, HistorySource, StepLatency } from '../protocol.ts'
import { computeQuantile, groupHistograms, type HistogramCounts, subtractHistogram } from './histograms.ts'
import { type MetricSamples, parseMetricsText } from './parse-metrics.ts'

export interface History {
  read(): HistoryResponse
  sample(signal: AbortSignal): Promise<void>
  /** Takes samples until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>
}

export interface HistoryOptions {
  readonly transport: Pick<Transport, 'call'>
  readonly clock: Clock
}

const INTERVAL_MS = 10_000
/** One hour. The oldest sample is dropped. */
const SAMPLES_MAX = 360
/** The sampling interval while no source is available, for example because the user lacks permission or the server is down. */
const UNAVAILABLE_INTERVAL_MS = 60_000

const STEP_HISTOGRAM = 'stowage_claim_step_duration_seconds'
const CALL_HISTOGRAMS = ['csi_sidecar_operations_seconds', 'csi_operations_seconds'] as const
const CLAIM_GAUGES = { Bound: 'pv_collector_bound_pvc_count', Pending: 'pv_collector_unbound_pvc_count' } as const
const METRICS = [STEP_HISTOGRAM, ...CALL_HISTOGRAMS, ...Object.values(CLAIM_GAUGES)]
const METRICS_PATH = `/metrics?${METRICS.map((name) => `name[]=${name}`).join('&')}`
const OPERATIONS_PATH = '/apis/stowage.dev/v1/operations?limit=500'
/** Operations beyond these pages are not counted. */
const OPERATION_PAGES_MAX = 10

/** The reasons of sources whose requests return 404. */
const NOT_SERVED = {
  operations: 'the API server does not serve the group stowage.dev',
  metrics: 'the API server does not serve the path /metrics',
} as const satisfies Partial<Record<HistorySource, string>>

type Histograms = ReadonlyMap<string, HistogramCounts>

interface Scrape {
  readonly atMs: number
  /** Null if the server has no journal, from which the steps are measured. */
  readonly steps: Histograms | null
  /** Null if no component in the server process calls drivers. */
  readonly calls: Histograms | null
  readonly claims: Readonly<Record<string, number>> | null
}

export function createHistory({ transport, clock }: HistoryOptions): History {
  const samples: HistorySample[] = []
  const notYet: Feature = { available: false, reason: 'no sample has been taken yet' }
  const sources: Record<HistorySource, Feature> = { claims: notYet, operations: notYet, metrics: notYet }
  let previous: Scrape | undefined

  async function call(path: string, signal: AbortSignal): Promise<string> {
    const response = await transport.call({ method: 'GET', path, signal })
    if (response.status !== 200) parseResponse(response)
    return response.text
  }

  async function fetchSource<T>(source: keyof typeof NOT_SERVED, fetch: () => Promise<T>): Promise<T | null> {
    try {
      const value = await fetch()
      sources[source] = { available: true }
      return value
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof SyntaxError)) throw error
      const isMissing = error instanceof ApiError && error.code === 404
      const reason = isMissing ? NOT_SERVED[source] : error.message
      sources[source] = { available: false, reason }
      return null
    }
  }

  async function scrape(signal: AbortSignal): Promise<Scrape> {
    const text = await call(METRICS_PATH, signal)
    const metrics = parseMetricsText(text)
    // A metric without samples has only its type.
    const has = (name: string) => text.includes(`# TYPE ${name} `)
    return {
      atMs: clock.monotonicMs(),
      steps: has(STEP_HISTOGRAM) ? groupHistograms(metrics, STEP_HISTOGRAM) : null,
      calls: CALL_HISTOGRAMS.some(has)
        ? new Map(CALL_HISTOGRAMS.flatMap((name) => [...groupHistograms(metrics, name)]))
        : null,
      claims: has(CLAIM_GAUGES.Bound) ? countClaims(metrics) : null,
    }
  }

  async function countOperations(signal: AbortSignal): Promise<Record<string, number>> {
    const counts: Record<string, number> = { Running: 0, Retrying: 0, Waiting: 0 }
    let continueToken = ''
    for (let page = 0; page < OPERATION_PAGES_MAX; page++) {
      const path = `${OPERATIONS_PATH}${continueToken ? `&continue=${encodeURIComponent(continueToken)}` : ''}`
      const list = JSON.parse(await call(path, signal))
      for (const { phase } of list.items ?? []) counts[phase] = (counts[phase] ?? 0) + 1
      continueToken = list.metadata?.continue ?? ''
      if (!continueToken) break
    }
    return counts
  }

  async function sample(signal: AbortSignal): Promise<void> {
    const operations = await fetchSource('operations', () => countOperations(signal))
    // The metrics of other servers do not cover volumes, and may be large.
    const isStowage = sources.operations.available
    const scraped = isStowage ? await fetchSource('metrics', () => scrape(signal)) : null
    if (!isStowage) sources.metrics = sources.operations
    sources.claims =
      scraped && !scraped.claims
        ? { available: false, reason: 'the binding controller does not run in the process of the API server' }
        : sources.metrics
    samples.push({ time: new Date(clock.nowMs()).toISOString(), operations, ...buildSample(scraped, previous) })
    if (samples.length > SAMPLES_MAX) samples.shift()
    previous = scraped ?? undefined
  }

  return {
    sample,
    read: () => ({ intervalMs: INTERVAL_MS, samples: [...samples], sources: { ...sources } }),
    async run(signal) {
      while (!signal.aborted) {
        await sample(signal).catch((error: unknown) => {
          if (!signal.aborted) throw error
        })
        const isAnyAvailable = Object.values(sources).some(({ available }) => available)
        await clock.sleep(isAnyAvailable ? INTERVAL_MS : UNAVAILABLE_INTERVAL_MS, signal).catch(() => {})
      }
    },
  }
}

const countClaims = (metrics: MetricSamples): Record<string, number> =>
  Object.fromEntries(
    Object.entries(CLAIM_GAUGES).map(([phase, name]) => [
      phase,
      (metrics.get(name) ?? []).reduce((total, { value }) => total + value, 0),
    ]),
  )

/** Returns the sample for the time between two scrapes. Without an earlier scrape, it has no rates. */
function buildSample(
  scraped: Scrape | null,
  previous: Scrape | undefined,
): Pick<HistorySample, 'claims' | 'provisionedPerSecond' | 'boundPerSecond' | 'steps' | 'csiCalls'> {
  const claims = scraped?.claims ?? null
  if (!scraped || !previous) {
    return { claims, provisionedPerSecond: null, boundPerSecond: null, steps: null, csiCalls: null }
  }
  const seconds = (scraped.atMs - previous.atMs) / 1_000
  const steps = scraped.steps && computeStepLatencies(scraped.steps, previous.steps)
  const rateOf = (step: string) => (steps ? (steps[step]?.count ?? 0) / seconds : null)
  return {
    claims,
    provisionedPerSecond: rateOf('Provisioned'),
    boundPerSecond: rateOf('Bound'),
    steps,
    csiCalls: scraped.calls && computeCalls(scraped.calls, previous.calls, seconds),
  }
}

function computeStepLatencies(current: Histograms, previous: Histograms | null): Record<string, StepLatency> {
  const steps: Record<string, StepLatency> = {}
  for (const [key, counts] of current) {
    const delta = subtractHistogram(counts, previous?.get(key))
    steps[capitalise(counts.labels.step ?? '')] = { count: delta.count, ...computeLatency(delta) }
  }
  return steps
}

function computeCalls(current: Histograms, previous: Histograms | null, seconds: number): CsiCallSample[] {
  const calls: CsiCallSample[] = []
  for (const [key, counts] of current) {
    const delta = subtractHistogram(counts, previous?.get(key))
    if (delta.count === 0) continue
    const { driver_name: driver = '', method_name = '', grpc_status_code: code = '' } = counts.labels
    const method = method_name.split('/').at(-1) ?? ''
    calls.push({ driver, method, code, perSecond: delta.count / seconds, ...computeLatency(delta) })
  }
  return calls
}

function computeLatency(counts: HistogramCounts): { readonly p50Ms: number | null; readonly p99Ms: number | null } {
  const inMs = (quantile: number) => {
    const seconds = computeQuantile(counts, quantile)
    return seconds === null ? null : seconds * 1_000
  }
  return { p50Ms: inMs(0.5), p99Ms: inMs(0.99) }
}

const capitalise = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
