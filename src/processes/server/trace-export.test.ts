import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { exportTraces } from './trace-export.ts'

let collector: Server
let bodies: Json[]
let statusCode: number
let api: ServerFixture
const registry = new Registry()
const abort = new AbortController()

beforeEach(async () => {
  bodies = []
  statusCode = 200
  collector = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      bodies.push({ path: request.url, ...JSON.parse(Buffer.concat(chunks).toString()) })
      response.writeHead(statusCode).end('{}')
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  api = await createServerFixture({ journal: 'own', answers: 'stowage' })
})
afterEach(async () => {
  abort.abort()
  await new Promise((resolve) => collector.close(resolve))
  await api.store.close()
})

it('PLUS-6 exports a trace per claim with its steps and driver calls, and counts spans that are not accepted', async () => {
  const { port } = collector.address() as AddressInfo
  const { clock } = api
  const url = `http://127.0.0.1:${port}/v1/traces`
  exportTraces({ url, steps: api.journal!.steps, version: '1', registry, clock, log: silentLog, signal: abort.signal })
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  const { uid } = (await api.post(claims, { metadata: { name: 'orders' }, spec })).json.metadata
  const createdMs = clock.nowMs()
  await clock.advance(100)
  const start = new Date(createdMs).toISOString().replace('Z', '000Z')
  const call = { start, durationMs: 90, driver: 'd', method: 'CreateVolume', volume: `pvc-${uid}`, result: 'Internal' }
  api.journal!.addActivities('p', [{ ...call, message: 'broken' }])
  await api.patch(`${claims}/orders/status`, { status: { phase: 'Bound' } }, 'merge')
  await api.waitUntil(() => bodies.length > 0, 'the export')
  expect(bodies[0].path).toBe('/v1/traces')
  const [{ resource, scopeSpans }] = bodies[0].resourceSpans
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'stowage' } })
  const spans: Json[] = scopeSpans[0].spans
  expect(spans.map(({ name, parentSpanId, status }) => [name, parentSpanId !== undefined, status?.message])).toEqual([
    ['CreateVolume', true, 'broken'],
    ['bound', true, undefined],
    ['claim', false, undefined],
  ])
  const root = spans[2]
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([uid.replaceAll('-', '')]))
  expect(spans[0].parentSpanId).toBe(root.spanId)
  expect(root.startTimeUnixNano).toBe(`${createdMs}000000`)
  expect(root.endTimeUnixNano).toBe(`${createdMs + 100}000000`)
  statusCode = 503
  api.journal!.addActivities('p', [call])
  await api.waitUntil(
    async () => /spans_total\{result="dropped"\} 1/.test(await registry.metrics()),
    'the count of dropped spans',
  )
  expect(await registry.metrics()).toMatch(/spans_total\{result="exported"\} 3/)
})
