import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { TransportRequest } from '../../client/http/transport.ts'
import { computeQuantile, groupHistograms, subtractHistogram } from './histograms.ts'
import { createHistory } from './history.ts'
import { parseMetricsText } from './parse-metrics.ts'

const formatMetrics = (bound: number) => `# TYPE stowage_claim_step_duration_seconds histogram
stowage_claim_step_duration_seconds_bucket{le="0.1",step="bound"} ${bound}
stowage_claim_step_duration_seconds_bucket{le="1",step="bound"} ${bound * 2}
stowage_claim_step_duration_seconds_bucket{le="+Inf",step="bound"} ${bound * 2}
# TYPE csi_sidecar_operations_seconds histogram
csi_sidecar_operations_seconds_bucket{driver_name="d",method_name="/csi.v1.Controller/CreateVolume",grpc_status_code="OK",le="+Inf"} ${bound}
# TYPE pv_collector_bound_pvc_count gauge
pv_collector_bound_pvc_count{namespace="a"} 3
pv_collector_bound_pvc_count{namespace="b"} 4
# TYPE pv_collector_unbound_pvc_count gauge
`

type Respond = (path: string) => { status: number; text: string }

function createFixture(respond: Respond) {
  const clock = manualClock()
  const paths: string[] = []
  const transport = {
    async call({ path }: TransportRequest) {
      paths.push(path)
      return { headers: {}, ...respond(path) }
    },
  }
  const history = createHistory({ transport, clock })
  const { signal } = new AbortController()
  const sampleAfter = async (ms: number) => {
    await clock.advance(ms)
    await history.sample(signal)
  }
  return { clock, paths, history, sampleAfter }
}

const notFound = { status: 404, text: '404 page not found' }
const operations = {
  status: 200,
  text: JSON.stringify({ items: [{ phase: 'Running' }, { phase: 'Retrying' }], metadata: {} }),
}

describe('createHistory', () => {
  it('samples counts, rates and latencies between two scrapes, and reads only the required metrics', async () => {
    let bound = 10
    const { history, paths, sampleAfter } = createFixture((path) =>
      path.startsWith('/metrics') ? { status: 200, text: formatMetrics(bound) } : operations,
    )
    await sampleAfter(0)
    expect(history.read().samples).toMatchObject([
      { claims: { Bound: 7, Pending: 0 }, boundPerSecond: null, steps: null },
    ])
    bound = 30
    await sampleAfter(10_000)
    const { samples, sources, intervalMs } = history.read()
    expect(intervalMs).toBe(10_000)
    expect(samples[1]).toMatchObject({
      operations: { Running: 1, Retrying: 1, Waiting: 0 },
      boundPerSecond: 4,
      provisionedPerSecond: 0,
      steps: { Bound: { count: 40, p50Ms: 100, p99Ms: expect.closeTo(982, 0) } },
      csiCalls: [{ driver: 'd', method: 'CreateVolume', code: 'OK', perSecond: 2 }],
    })
    expect(sources).toEqual({
      claims: { available: true },
      operations: { available: true },
      metrics: { available: true },
    })
    expect(paths.find((path) => path.startsWith('/metrics'))).toContain('?name[]=stowage_claim_step_duration_seconds&')
  })

  it('SYS-13 returns null and the reason for a server without the group stowage.dev, and never requests its metrics', async () => {
    const { history, paths, sampleAfter } = createFixture(() => notFound)
    await sampleAfter(0)
    const { samples, sources } = history.read()
    expect(samples).toMatchObject([
      { claims: null, operations: null, boundPerSecond: null, steps: null, csiCalls: null },
    ])
    const reason = 'the API server does not serve the group stowage.dev'
    expect(sources).toEqual({
      claims: { available: false, reason },
      operations: { available: false, reason },
      metrics: { available: false, reason },
    })
    expect(paths).toEqual(['/apis/stowage.dev/v1/operations?limit=500'])
  })

  it('names the path /metrics if a server with the group stowage.dev does not serve it', async () => {
    const { history, sampleAfter } = createFixture((path) => (path.startsWith('/metrics') ? notFound : operations))
    await sampleAfter(0)
    const { sources } = history.read()
    expect(sources.operations).toEqual({ available: true })
    expect(sources.metrics.reason).toBe('the API server does not serve the path /metrics')
  })

  it('returns null for values that a server without a journal or controllers does not measure', async () => {
    const { history, sampleAfter } = createFixture((path) =>
      path.startsWith('/metrics') ? { status: 200, text: '' } : operations,
    )
    await sampleAfter(0)
    await sampleAfter(10_000)
    expect(history.read().samples.at(-1)).toMatchObject({
      claims: null,
      steps: null,
      boundPerSecond: null,
      csiCalls: null,
    })
    expect(history.read().sources.claims.reason).toContain('binding controller')
  })

  it('keeps one hour of samples, and continues after the server was unreachable', async () => {
    let isDown = false
    const { history, sampleAfter } = createFixture((path) => {
      if (isDown) return { status: 503, text: '{"kind":"Status","code":503,"message":"down"}' }
      return path.startsWith('/metrics') ? { status: 200, text: formatMetrics(1) } : operations
    })
    for (let count = 0; count < 365; count++) await sampleAfter(10_000)
    expect(history.read().samples).toHaveLength(360)
    isDown = true
    await sampleAfter(10_000)
    expect(history.read().samples.at(-1)).toMatchObject({ operations: null, claims: null })
    expect(history.read().sources.operations).toEqual({ available: false, reason: 'down' })
    isDown = false
    await sampleAfter(60_000)
    expect(history.read().sources.operations.available).toBe(true)
  })
})

describe('histograms', () => {
  const parse = (text: string) => [...groupHistograms(parseMetricsText(text), 'x').values()][0]!

  it('parses labels with escaped characters', () => {
    const samples = parseMetricsText('x{a="b\\"c,d",e="f\\\\"} 2\nx 3\n')
    expect(samples.get('x')).toEqual([
      { labels: { a: 'b"c,d', e: 'f\\' }, value: 2 },
      { labels: {}, value: 3 },
    ])
  })

  it('interpolates quantiles, and limits them to the last finite bound', () => {
    const counts = parse('x_bucket{le="1"} 0\nx_bucket{le="2"} 10\nx_bucket{le="+Inf"} 20\n')
    expect(computeQuantile(counts, 0.25)).toBe(1.5)
    expect(computeQuantile(counts, 0.99)).toBe(2)
    expect(computeQuantile({ ...counts, count: 0 }, 0.5)).toBe(null)
  })

  it('starts over when the counters of a restarted server are lower', () => {
    const earlier = parse('x_bucket{le="+Inf"} 20\n')
    const later = parse('x_bucket{le="+Inf"} 5\n')
    expect(subtractHistogram(later, earlier).count).toBe(5)
    expect(subtractHistogram(earlier, later).count).toBe(15)
  })
})
