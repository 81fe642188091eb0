// Tests the HTTP client with servers that fail or respond in unusual forms.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Json } from '../../apiserver/server.fixture.ts'
import { systemClock } from '../../base/clock.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { createCache } from '../../runtime/cache.ts'
import { failedWriteIndex, type WatchEvent } from '../client.ts'
import { createHttpFixture } from './http.fixture.ts'
import { type HttpClientOptions, httpClient } from './http-client.ts'

const stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

type Respond = (request: IncomingMessage, response: ServerResponse) => void

/** Starts an HTTP server that responds as specified, and a client for it. */
async function startServer(respond: Respond, options: Partial<HttpClientOptions> = {}) {
  const requests: string[] = []
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    respond(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const connection = { server: `http://127.0.0.1:${port}`, credentials: async () => ({ token: 'secret-token' }) }
  const client = httpClient({ connection, clock: systemClock(), ...options })
  stops.push(async () => {
    client.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { server, client, requests }
}

const respondJson = (response: ServerResponse, code: number, body: unknown, headers = {}) => {
  response.writeHead(code, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
const aStatus = (code: number, reason: string, message = 'as configured') => ({ kind: 'Status', code, reason, message })
const aConfigMap = (name: string, resourceVersion = '5') => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { namespace: 'default', name, uid: name, resourceVersion },
})
const ref = { namespace: 'default', name: 'a' }
const errorOf = (work: Promise<unknown>): Promise<ApiError> =>
  work.then(
    () => expect.fail('the request succeeded'),
    (error) => error,
  )
async function waitFor(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    if (i > 100_000) throw new Error('the condition did not become true')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('the responses of a stock server', () => {
  const csiNode = (drivers: unknown) => ({
    kind: 'CSINode',
    apiVersion: 'storage.k8s.io/v1',
    metadata: { name: 'n', uid: 'u', resourceVersion: '5', annotations: null, ownerReferences: [] },
    spec: { drivers },
  })
  const decodedCsiNode = { metadata: { name: 'n', uid: 'u', resourceVersion: '5' }, spec: { drivers: [] } }
  const respondWithoutDrivers = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.includes('watch=true')) {
      response.writeHead(200)
      const lines = ['ADDED', 'MODIFIED', 'DELETED'].map((type) => JSON.stringify({ type, object: csiNode(null) }))
      response.end(`${lines.join('\n')}\n`)
    } else if (request.url?.includes('resourceVersion=list')) {
      respondJson(response, 200, {
        kind: 'CSINodeList',
        metadata: { resourceVersion: '5' },
        items: [csiNode(null), csiNode([])],
      })
    } else respondJson(response, 200, csiNode(null))
  }

  it('SYS-29 are decoded to the same object for null and empty lists, by get, list, watch, create, update and patch', async () => {
    const { client } = await startServer(respondWithoutDrivers)
    const signal = new AbortController().signal
    const { items } = await client.list(csiNodeKind, { resourceVersion: 'list' })
    const objects: unknown[] = [
      await client.get(csiNodeKind, { name: 'n' }),
      await client.create(csiNodeKind, decodedCsiNode),
      await client.update(csiNodeKind, decodedCsiNode),
      await client.patch(csiNodeKind, { name: 'n' }, { type: 'merge', body: {} }),
      ...items,
    ]
    for await (const event of client.watch(csiNodeKind, { signal })) if ('object' in event) objects.push(event.object)
    expect(objects).toStrictEqual(Array(9).fill(decodedCsiNode))
  })

  it('SYS-29 may have null instead of items or resources', async () => {
    const { client } = await startServer((request, response) =>
      respondJson(
        response,
        200,
        request.url === '/apis/stowage.dev/v1' ? { resources: null } : { items: null, metadata: {} },
      ),
    )
    expect((await client.list(csiNodeKind)).items).toEqual([])
    expect(await client.commitsAtomically()).toBe(false)
  })
})

describe('an HTTP request', () => {
  it('is retried after 429 and 503 with Retry-After', async () => {
    const codes = [429, 503, 200]
    const { client, requests } = await startServer((_request, response) => {
      const code = codes.shift()!
      if (code === 200) respondJson(response, 200, aConfigMap('a'))
      else respondJson(response, code, aStatus(code, 'Busy'), { 'retry-after': '0' })
    })
    expect((await client.get(configMapKind, ref)).metadata.name).toBe('a')
    expect(requests.length).toBe(3)
  })

  it('is retried at most 10 times after 429 with Retry-After, and not after 503 without Retry-After', async () => {
    const busyServer = await startServer((_, response) =>
      respondJson(response, 429, aStatus(429, 'Busy'), { 'retry-after': '0' }),
    )
    expect(await errorOf(busyServer.client.get(configMapKind, ref))).toMatchObject({ code: 429 })
    expect(busyServer.requests.length).toBe(11)
    const brokenServer = await startServer((_, response) =>
      respondJson(response, 503, aStatus(503, 'ServiceUnavailable')),
    )
    expect(await errorOf(brokenServer.client.create(configMapKind, aConfigMap('a')))).toMatchObject({ code: 503 })
    expect(brokenServer.requests.length).toBe(1)
  })

  it('fails with 503 if the server cannot be reached', async () => {
    const { client, server } = await startServer((_, response) => respondJson(response, 200, aConfigMap('a')))
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    const error = await errorOf(client.get(configMapKind, ref))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      code: 503,
      reason: 'ServiceUnavailable',
      message: expect.stringContaining('ECONNREFUSED (no server listens there)'),
    })
  })

  it('is retried after a broken connection only if it is a read', async () => {
    const { client, requests } = await startServer((request) => void request.socket.destroy())
    expect(await errorOf(client.create(configMapKind, aConfigMap('a')))).toMatchObject({ code: 503 })
    expect(requests.length).toBe(1)
    expect(await errorOf(client.get(configMapKind, ref))).toMatchObject({ code: 503 })
    expect(requests.length).toBe(3)
  })

  it('fails after its timeout if there is no response', async () => {
    const clock = manualClock()
    let hasRequest = false
    const { client } = await startServer(
      () => {
        hasRequest = true
      },
      { clock, timeoutMs: 5_000 },
    )
    const error = errorOf(client.get(configMapKind, ref))
    await waitFor(() => hasRequest)
    await clock.advance(5_000)
    expect(await error).toMatchObject({ code: 504, reason: 'Timeout' })
  })

  it('fails on abort', async () => {
    const { client } = await startServer(() => {})
    const abort = new AbortController()
    const error = errorOf(client.get(configMapKind, ref, { signal: abort.signal }))
    abort.abort()
    expect(await error).toBeInstanceOf(ApiError)
  })

  it('reports the error response of a proxy', async () => {
    const { client } = await startServer((_, response) => {
      response.writeHead(502, { 'content-type': 'text/html' })
      response.end('<h1>Bad Gateway</h1>')
    })
    expect(await errorOf(client.get(configMapKind, ref))).toMatchObject({
      code: 502,
      message: expect.stringContaining('Bad Gateway'),
    })
  })

  it('has the content type of its patch', async () => {
    const types: unknown[] = []
    const { client } = await startServer((request, response) => {
      types.push(request.headers['content-type'])
      respondJson(response, 200, aConfigMap('a'))
    })
    for (const type of ['merge', 'strategic', 'apply'] as const)
      await client.patch(configMapKind, ref, { type, body: {} })
    await client.patch(configMapKind, ref, { type: 'json', body: [] })
    expect(types).toEqual([
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
      'application/apply-patch+yaml',
      'application/json-patch+json',
    ])
  })

  it('fails with an error that does not contain the token', async () => {
    const { client } = await startServer((request) => void request.socket.destroy())
    const error = await errorOf(client.get(configMapKind, ref))
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('secret-token')
  })
})

describe('a commit to a server without transactions', () => {
  it('sends its writes one by one until one fails, and returns the index of that write', async () => {
    const { client, requests } = await startServer((request, response) => {
      if (request.url!.startsWith('/apis/stowage.dev')) return respondJson(response, 404, aStatus(404, 'NotFound'))
      if (request.method === 'DELETE') return respondJson(response, 409, aStatus(409, 'Conflict'))
      return respondJson(response, 200, aConfigMap('a'))
    })
    expect(await client.commitsAtomically()).toBe(false)
    requests.length = 0
    const error = await errorOf(
      client.commit([
        { do: 'create', kind: configMapKind, object: aConfigMap('a') },
        { do: 'delete', kind: configMapKind, ref },
        { do: 'create', kind: configMapKind, object: aConfigMap('b') },
      ]),
    )
    expect(error).toMatchObject({ code: 409 })
    expect(failedWriteIndex(error)).toBe(1)
    expect(requests).toEqual([
      'POST /api/v1/namespaces/default/configmaps',
      'DELETE /api/v1/namespaces/default/configmaps/a',
    ])
  })
})

describe('a kind with several versions', () => {
  it('uses the first version that the server serves', async () => {
    const { client, requests } = await startServer((request, response) => {
      if (request.url === '/apis/storage.k8s.io/v1') return respondJson(response, 404, aStatus(404, 'NotFound'))
      if (request.url === '/apis/storage.k8s.io/v1beta1')
        return respondJson(response, 200, { resources: [{ name: 'storageclasses' }] })
      return respondJson(response, 200, { items: [], metadata: { resourceVersion: '1' } })
    })
    await client.list(storageClassKind)
    await client.list(storageClassKind)
    expect(requests.slice(1)).toEqual([
      'GET /apis/storage.k8s.io/v1beta1',
      'GET /apis/storage.k8s.io/v1beta1/storageclasses',
      'GET /apis/storage.k8s.io/v1beta1/storageclasses',
    ])
  })

  it('SYS-15 uses another version when the server no longer serves the first', async () => {
    let servedVersions = ['v1', 'v1beta1']
    const { client } = await startServer((request, response) => {
      const [, version = '', plural] = /^\/apis\/storage\.k8s\.io\/([^/]+)(?:\/([^?]+))?/.exec(request.url!) ?? []
      if (!servedVersions.includes(version)) return respondJson(response, 404, aStatus(404, 'NotFound'))
      if (!plural) return respondJson(response, 200, { resources: [{ name: 'storageclasses' }] })
      return respondJson(response, 200, { items: [], metadata: { resourceVersion: version } })
    })
    const listAndGetVersion = async () => (await client.list(storageClassKind)).resourceVersion
    expect(await listAndGetVersion()).toBe('v1')
    servedVersions = ['v1beta1']
    expect(await errorOf(listAndGetVersion())).toMatchObject({ code: 404 })
    expect(await listAndGetVersion()).toBe('v1beta1')
    servedVersions = []
    expect(await errorOf(listAndGetVersion())).toMatchObject({ code: 404 })
    expect(await client.serves(storageClassKind)).toBe(false)
    expect(await errorOf(listAndGetVersion())).toMatchObject({ code: 404 })
    servedVersions = ['v1']
    expect(await listAndGetVersion()).toBe('v1')
  })
})

describe('a watch', () => {
  const collectEvents = async (events: AsyncIterable<WatchEvent<Json>>, target: WatchEvent<Json>[] = []) => {
    for await (const event of events) target.push(event)
    return target
  }
  const line = (type: string, body: unknown) => `${JSON.stringify({ type, object: body })}\n`
  const startResponse = (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
  }

  it('reads events that arrive in chunks of 7 bytes, and ignores unknown event types', async () => {
    const text = line('ADDED', aConfigMap('ä', '6')) + line('SPECIAL', {}) + line('DELETED', aConfigMap('b', '7'))
    const bytes = Buffer.from(text)
    const { client } = await startServer((_, response) => {
      startResponse(response)
      const writeFrom = (offset: number) => {
        if (offset >= bytes.length) return void response.end()
        response.write(bytes.subarray(offset, offset + 7), () => setImmediate(writeFrom, offset + 7))
      }
      writeFrom(0)
    })
    const events = await collectEvents(
      client.watch(configMapKind, { resourceVersion: '5', signal: new AbortController().signal }),
    )
    expect(
      events.map((event) => (event.type === 'added' || event.type === 'deleted' ? event.object.metadata.name : '')),
    ).toEqual(['ä', 'b'])
  })

  /** Starts a watch that receives one line, and advances the clock by watchSilenceMs. */
  async function startSilentWatch(firstLine: string) {
    const clock = manualClock()
    let openedWatches = 0
    const { client } = await startServer(
      (_, response) => {
        startResponse(response)
        response.write(firstLine)
        openedWatches++
      },
      { clock, watchSilenceMs: 60_000 },
    )
    const events: WatchEvent<Json>[] = []
    const watchRun = collectEvents(client.watch(configMapKind, { signal: new AbortController().signal }), events)
    watchRun.catch(() => {}) // the test reads the error later
    await waitFor(() => openedWatches === 1 && events.length === 1)
    await clock.advance(59_000)
    await clock.advance(1_000)
    return watchRun
  }

  it('fails with an explanation if a server that sends bookmarks is silent for too long', async () => {
    expect(await errorOf(startSilentWatch(line('BOOKMARK', aConfigMap('a'))))).toMatchObject({
      code: 504,
      message: expect.stringMatching(/^the watch of configmaps received no event and no bookmark from .* for 60 s$/),
    })
  })

  it('SYS-29 ends without an error if a server without bookmarks (etcd 3.4) is silent', async () => {
    await expect(startSilentWatch(line('ADDED', aConfigMap('a')))).resolves.toBeDefined()
  })

  it('fails with the error of the server in an event or in the response', async () => {
    const eventServer = await startServer((_, response) => {
      startResponse(response)
      response.end(line('ERROR', aStatus(410, 'Expired', 'too old')))
    })
    const signal = new AbortController().signal
    expect(
      await errorOf(collectEvents(eventServer.client.watch(configMapKind, { resourceVersion: '1', signal }))),
    ).toMatchObject({
      code: 410,
      reason: 'Expired',
    })
    const responseServer = await startServer((_, response) =>
      respondJson(response, 429, aStatus(429, 'TooManyRequests')),
    )
    expect(await errorOf(collectEvents(responseServer.client.watch(configMapKind, { signal })))).toMatchObject({
      code: 429,
    })
  })

  it('fails on a line that is too long', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    const { client } = await startServer((_, response) => {
      startResponse(response)
      const writeChunk = () => void (!response.destroyed && response.write(chunk, writeChunk))
      writeChunk()
    })
    const error = await errorOf(collectEvents(client.watch(configMapKind, { signal: new AbortController().signal })))
    expect(error).toMatchObject({ code: 503, message: expect.stringContaining('longer than') })
  })

  it('fails if the connection breaks in the middle of a line', async () => {
    const { client } = await startServer((_, response) => {
      startResponse(response)
      response.write('{"type":"ADD', () => response.destroy())
    })
    expect(
      await errorOf(collectEvents(client.watch(configMapKind, { signal: new AbortController().signal }))),
    ).toMatchObject({
      code: 503,
    })
  })
})

describe('the HTTP client', () => {
  it('leaves at most two sockets and no store watch open after a thousand watches', async () => {
    const { client, api, stop } = await createHttpFixture()
    stops.push(stop)
    for (let round = 0; round < 1_000; round++) {
      const abort = new AbortController()
      for await (const event of client.watch(configMapKind, { sendInitialEvents: true, signal: abort.signal })) {
        if (event.type === 'bookmark') break
      }
    }
    await waitFor(() => client.countSockets() <= 2 && api.store.stats().watchers === 0)
  })

  it('resumes the watch of a cache after a server outage without missing a delete', async () => {
    const clock = manualClock()
    const { client, api, listener, restart, stop } = await createHttpFixture({}, { clock })
    stops.push(stop)
    for (const name of ['a', 'b']) await client.create(configMapKind, { metadata: { namespace: 'default', name } })
    const cache = createCache({ client, kind: configMapKind, clock, random: () => 0.5 })
    const abort = new AbortController()
    const cacheRun = cache.run(abort.signal)
    await waitFor(() => cache.size === 2)
    await listener.stop()
    await api.delete('/api/v1/namespaces/default/configmaps/a')
    await restart()
    for (let i = 0; cache.size === 2 && i < 2_000; i++) {
      await clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(cache.list().map(({ metadata }) => metadata.name)).toEqual(['b'])
    abort.abort()
    await cacheRun
  })
})
