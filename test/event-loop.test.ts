// Tests that large and generated requests block the event loop for less than about 50 ms. The time is processor time, relative
// to a known computation in the same run, because the speed of machines differs and other processes use them too.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../src/apiserver/server.fixture.ts'
import { createDice } from './fuzz/dice.ts'
import { createGenerator, type FuzzRequest } from './fuzz/generate-requests.ts'
import { createFuzzHarness } from './fuzz/harness.ts'

/** Takes 12 to 15 ms on an idle processor of 3 GHz. */
const UNIT_ITERATIONS = 10_000_000
/** About 50 ms. */
const UNITS_MAX = 4
const ATTEMPTS = 3
const FUZZ_SEED = 20_260_301
const FUZZ_REQUESTS = 1_500

const MAPS = '/api/v1/namespaces/default/configmaps'
const JSON_BODY = { 'content-type': 'application/json' }
const YAML_BODY = { 'content-type': 'application/yaml' }
const MEBIBYTE = 1024 * 1024

let api: ServerFixture
let unitMs = 0
let createdCount = 0
const nextName = () => `created-${createdCount++}`

beforeAll(async () => {
  api = await createServerFixture()
  unitMs = Math.min(...Array.from({ length: 5 }, measureUnit))
  await post(mapOf('keys', {}, keysOf(9_500)))()
  await post(mapOf('owned', { ownerReferences: owners(1_500), finalizers: finalizers(1_500) }))()
})
afterAll(() => api.store.close())

const cpuMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

function measureUnit(): number {
  const startMs = cpuMs()
  let state = 1
  for (let i = 0; i < UNIT_ITERATIONS; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
  }
  const ms = cpuMs() - startMs
  return state === 0 ? Number.NaN : ms // uses the result, so that the loop is not optimized away
}

/** Returns the most processor time between two turns of the event loop while the request runs. */
async function longestTurnMs(send: Send): Promise<{ ms: number; status: number }> {
  let status = 0
  let ms = 0
  let lastMs = cpuMs()
  const completion = send().then((response) => (status = response.status))
  while (status === 0) {
    await new Promise((resolve) => setImmediate(resolve))
    ms = Math.max(ms, cpuMs() - lastMs)
    lastMs = cpuMs()
  }
  await completion
  return { ms, status }
}

const keysOf = (count: number, prefix = 'key') =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}-${index}`, '']))
const owners = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    name: `pod-${index}`,
    uid: `${index}`,
  }))
const finalizers = (count: number) => Array.from({ length: count }, (_, index) => `example.com/f${index}`)
const mapOf = (name: string, metadata: object, data: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
})

/** Sends a request whose body was prepared before. */
type Send = () => Promise<{ status: number }>

const post = (body: object | string, headers: Record<string, string> = JSON_BODY, path = MAPS): Send => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return () => api.call('POST', path, text, headers)
}
const patch = (name: string, type: string, body: unknown): Send => {
  const text = JSON.stringify(body)
  const headers = { 'content-type': `application/${type}` }
  return () => api.call('PATCH', `${MAPS}/${name}?dryRun=All&fieldManager=test`, text, headers)
}
const get =
  (url: string, headers?: Record<string, string>): Send =>
  () =>
    api.get(url, headers)
const yamlOf = (fields: string) => `metadata:\n  name: ${nextName()}\n${fields}`
const lines = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => `${text(index)}\n`).join('')

/** Each prepares a request. */
const REQUESTS: Readonly<Record<string, () => Send>> = {
  'a string of 1 MB': () => post(mapOf(nextName(), {}, { text: 'x'.repeat(MEBIBYTE - 100) })),
  'a string of 2.9 MB': () => post(mapOf(nextName(), {}, { text: 'x'.repeat(2.9 * MEBIBYTE) })),
  '9,500 keys': () => post(mapOf(nextName(), {}, keysOf(9_500))),
  '200,000 keys': () => post(mapOf(nextName(), {}, keysOf(200_000))),
  '9,500 annotations': () => post(mapOf(nextName(), { annotations: keysOf(9_500) })),
  '9,500 invalid labels': () => post(mapOf(nextName(), { labels: keysOf(9_500, 'a b') })),
  '9,500 unknown fields': () => post({ ...mapOf(nextName(), {}), ...keysOf(9_500) }),
  '200,000 duplicate keys': () => post(`{"metadata":{"name":"a"},"data":{${'"a":"b",'.repeat(200_000)}"a":"b"}}`),
  '9,500 finalizers': () => post(mapOf(nextName(), { finalizers: finalizers(9_500) })),
  '200,000 finalizers': () => post(mapOf(nextName(), { finalizers: finalizers(200_000) })),
  '1,900 ownerReferences': () => post(mapOf(nextName(), { ownerReferences: owners(1_900) })),
  'deep JSON': () => post('['.repeat(MEBIBYTE)),
  'an apply of 1,500 ownerReferences': () =>
    patch('owned', 'apply-patch+yaml', mapOf('owned', { ownerReferences: owners(1_500) })),
  'an apply of 20,000 ownerReferences': () =>
    patch('owned', 'apply-patch+yaml', mapOf('owned', { ownerReferences: owners(20_000) })),
  'an apply of 9,000 keys': () => patch('applied', 'apply-patch+yaml', mapOf('applied', {}, keysOf(9_000))),
  'a merge patch of 9,500 keys': () => patch('keys', 'merge-patch+json', { data: keysOf(9_500, 'other') }),
  'a strategic merge patch of 1,900 ownerReferences': () =>
    patch('owned', 'strategic-merge-patch+json', { metadata: { ownerReferences: owners(1_900) } }),
  'a strategic merge patch of 8,000 finalizers': () =>
    patch('owned', 'strategic-merge-patch+json', { metadata: { finalizers: finalizers(8_000) } }),
  'a strategic merge patch with the order of 4,000 finalizers': () =>
    patch('owned', 'strategic-merge-patch+json', {
      metadata: { '$setElementOrder/finalizers': finalizers(4_000), finalizers: finalizers(4_000) },
    }),
  'a JSON patch of 10,000 operations': () =>
    patch(
      'owned',
      'json-patch+json',
      Array.from({ length: 10_000 }, () => ({ op: 'add', path: '/metadata/finalizers/0', value: 'example.com/x' })),
    ),
  'a JSON patch that moves 10,000 items': () =>
    patch(
      'owned',
      'json-patch+json',
      Array.from({ length: 10_000 }, () => ({
        op: 'move',
        from: '/metadata/ownerReferences/0',
        path: '/metadata/ownerReferences/1400',
      })),
    ),
  'large managedFields': () => {
    const entry = { operation: 'Update', apiVersion: 'v1', time: '2026-01-31T12:00:00Z', fieldsType: 'FieldsV1' }
    const fieldsV1 = { 'f:data': Object.fromEntries(Object.keys(keysOf(100)).map((key) => [`f:${key}`, {}])) }
    const managedFields = Array.from({ length: 90 }, (_, index) => ({ ...entry, manager: `m${index}`, fieldsV1 }))
    return post(mapOf(nextName(), { managedFields }))
  },
  'YAML of 4,000 lines': () => post(yamlOf(`data:\n${lines(4_000, (index) => `  key-${index}: a`)}`), YAML_BODY),
  'YAML of 30,000 lines': () => post(yamlOf(`data:\n${lines(30_000, (index) => `  key-${index}: a`)}`), YAML_BODY),
  'YAML with a list of 9,000 items': () => post(yamlOf(`items: [${'a,'.repeat(9_000)}]`), YAML_BODY),
  'YAML with a block of 0.5 MB': () => post(yamlOf(`data:\n  text: |\n${lines(65_000, () => '    aaa')}`), YAML_BODY),
  'YAML with 1 MB of comments': () => post(yamlOf('#\n'.repeat(MEBIBYTE / 2 - 100)), YAML_BODY),
  'YAML of 2.9 MB': () => post(yamlOf('\n'.repeat(2.9 * MEBIBYTE)), YAML_BODY),
  'deep YAML': () => post('['.repeat(90_000), YAML_BODY),
  'YAML that looks like JSON': () => post(`{${'"a":1,'.repeat(400_000)}`, YAML_BODY),
  'broken protobuf': () => {
    const bytes = Buffer.concat([Buffer.from('k8s\0'), Buffer.alloc(2.9 * MEBIBYTE, 0x12)])
    return () => api.call('POST', MAPS, bytes, { 'content-type': 'application/vnd.kubernetes.protobuf' })
  },
  'a role of 1,300 rules': () => {
    const rules = Array.from({ length: 1_300 }, (_, index) => ({
      apiGroups: [''],
      resources: [`r${index}`],
      verbs: ['get'],
    }))
    return post({ metadata: { name: nextName() }, rules }, JSON_BODY, '/apis/rbac.authorization.k8s.io/v1/clusterroles')
  },
  'a read of 9,500 keys in YAML': () => get(`${MAPS}/keys`, { accept: 'application/yaml' }),
  'a read of 9,500 keys in protobuf': () => get(`${MAPS}/keys`, { accept: 'application/vnd.kubernetes.protobuf' }),
  'a list with 100 requirements': () =>
    get(`${MAPS}?labelSelector=${Array.from({ length: 100 }, (_, index) => `label-${index}!=a`).join(',')}`),
  'a list with a selector of 16 kB': () =>
    get(`${MAPS}?labelSelector=${encodeURIComponent(`a notin (${Array(3_000).fill('value').join(',')})`)}`),
  'a long Accept header': () => get(`${MAPS}/keys`, { accept: 'a/b;q=1,'.repeat(7_000) }),
}

describe('the event loop', () => {
  it.each(Object.entries(REQUESTS))('SYS-19 is not blocked by %s', async (_, prepare) => {
    let best = { ms: Number.POSITIVE_INFINITY, status: 0 }
    for (let attempt = 0; attempt < ATTEMPTS && best.ms > UNITS_MAX * unitMs; attempt++) {
      const turn = await longestTurnMs(prepare())
      if (turn.ms < best.ms) best = turn
    }
    expect(best.status).toBeLessThan(500)
    expect(best.ms / unitMs).toBeLessThan(UNITS_MAX)
  })

  it(`SYS-19 is not blocked by ${FUZZ_REQUESTS} generated requests (seed ${FUZZ_SEED})`, async () => {
    const recordedRequests: FuzzRequest[] = []
    const harness = await createFuzzHarness({ seed: FUZZ_SEED })
    const generate = createGenerator(createDice(FUZZ_SEED))
    for (let i = 0; i < FUZZ_REQUESTS; i++) {
      const request = generate(harness.state)
      recordedRequests.push(request)
      await harness.send(request)
    }
    const replayServer = await createServerFixture()
    const slowRequests: string[] = []
    for (const { method, path, query, headers, body } of recordedRequests) {
      if (new URLSearchParams(query).has('resourceVersion')) continue // it may wait for a future revision
      const url = query === '' ? path : `${path}?${query}`
      const { ms } = await longestTurnMs(() => replayServer.call(method, url, body, headers as Record<string, string>))
      if (ms > UNITS_MAX * unitMs) slowRequests.push(`${method} ${url}: ${ms / unitMs} units`)
    }
    expect(slowRequests).toEqual([])
    await replayServer.store.close()
  })
})
