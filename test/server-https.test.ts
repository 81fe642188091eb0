// Tests what only a server process shows: client certificates, headers, large bodies, watches over a connection, and restarts.
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from './helpers/server.ts'
import { watchFrom } from './helpers/watch.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const MEBIBYTE = 1024 * 1024

let dir: string
let server: RunningServer
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-https-'))
  server = await startServer({ dataDir: join(dir, 'data') })
})
afterAll(async () => {
  await server.stop()
  await rm(dir, { recursive: true })
})

/** Sends a request with the given credentials, or none. */
async function sendRequest(
  path: string,
  options: RequestOptions = {},
  body?: string,
): Promise<{ status: number; json: any; text: string }> {
  const { hostname, port } = new URL(server.url)
  const outgoingRequest = request({ host: hostname, port, path, ca: server.ca, agent: false, ...options })
  outgoingRequest.end(body)
  const [response] = (await once(outgoingRequest, 'response')) as [IncomingMessage]
  const text = await readText(response)
  return {
    status: response.statusCode ?? 0,
    text,
    get json() {
      return JSON.parse(text)
    },
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return text
}

const create = (name: string, fields: object = {}) => server.call('POST', MAPS, { metadata: { name }, ...fields })
const readNewestVersion = async () => (await server.call('GET', `${MAPS}?limit=1`)).json.metadata.resourceVersion

describe('authentication', () => {
  const readPkiFile = (name: string) => readFile(join(server.dataDir, 'pki', name), 'utf8')

  it('SYS-9 accepts a client certificate', async () => {
    const admin = { cert: await readPkiFile('admin.crt'), key: await readPkiFile('admin.key') }
    expect((await sendRequest('/api/v1/secrets', admin)).status).toBe(200)
    const viewer = { cert: await readPkiFile('viewer.crt'), key: await readPkiFile('viewer.key') }
    expect((await sendRequest('/api/v1/configmaps', viewer)).status).toBe(200)
    expect((await sendRequest('/api/v1/secrets', viewer)).json).toMatchObject({
      code: 403,
      message:
        'secrets is forbidden: User "stowage-viewer" cannot list resource "secrets" in API group "" at the cluster scope',
    })
  })

  it('SYS-9 accepts a token, and returns 401 for an unknown one', async () => {
    expect((await sendRequest('/api', { headers: { authorization: `Bearer ${server.token}` } })).status).toBe(200)
    for (const authorization of ['Bearer wrong', 'Bearer ', `Basic ${Buffer.from('a:b').toString('base64')}`]) {
      expect((await sendRequest('/healthz', { headers: { authorization } })).json).toMatchObject({
        kind: 'Status',
        code: 401,
        reason: 'Unauthorized',
      })
    }
  })

  it('SYS-9 lets anonymous users read health and version, and returns 403 for other paths', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version']) expect((await sendRequest(path)).status).toBe(200)
    expect((await sendRequest('/api')).json).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message: 'forbidden: User "system:anonymous" cannot get path "/api"',
    })
    for (const path of [MAPS, '/metrics', '/openapi/v3', '/nowhere']) expect((await sendRequest(path)).status).toBe(403)
  })
})

describe('discovery', () => {
  const V2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const V2BETA1 = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'
  const PLAIN_JSON = /^application\/json(;\s*charset=utf-8)?$/

  it.each([
    ['kubectl up to 1.25, Python, Freelens', 'application/json, */*', PLAIN_JSON],
    ['plain JSON', 'application/json', PLAIN_JSON],
    ['no preference', '*/*', PLAIN_JSON],
    ['kubectl 1.26 to 1.29', `${V2BETA1},application/json`, /v=v2beta1|^application\/json$/],
    ['kubectl 1.30 to 1.36', `${V2},${V2BETA1},application/json`, /v=v2(;|$)/],
    ['kubectl from 1.37', `${V2},application/json`, /v=v2(;|$)/],
    ['Headlamp', 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList', /v=v2(;|$)/],
  ])('SYS-2 responds to %s in an accepted format', async (_, accept, type) => {
    for (const path of ['/api', '/apis']) {
      const { status, headers, json } = await server.call('GET', path, undefined, { accept })
      expect(status).toBe(200)
      expect(headers['content-type']).toMatch(type)
      const isAggregated = headers['content-type']!.includes('as=APIGroupDiscoveryList')
      expect(json.kind).toBe(isAggregated ? 'APIGroupDiscoveryList' : path === '/api' ? 'APIVersions' : 'APIGroupList')
      if (isAggregated)
        expect(json.apiVersion).toBe(`apidiscovery.k8s.io/${/v=([^;]+)/.exec(headers['content-type']!)![1]}`)
    }
  })

  it('returns 304 for a matching ETag', async () => {
    const { headers } = await server.call('GET', '/apis', undefined, { accept: `${V2},application/json` })
    expect(headers.etag).toMatch(/^"/)
    expect(headers.vary).toMatch(/accept/i)
    const conditionalResponse = await server.call('GET', '/apis', undefined, {
      accept: `${V2},application/json`,
      'if-none-match': headers.etag!,
    })
    expect({ status: conditionalResponse.status, text: conditionalResponse.text }).toEqual({ status: 304, text: '' })
  })

  it('returns 404 for a group version that is not served', async () => {
    for (const path of ['/apis/snapshot.storage.k8s.io/v1', '/apis/storage.k8s.io/v9', '/apis/example.com']) {
      expect((await server.call('GET', path)).json).toMatchObject({ kind: 'Status', code: 404 })
    }
    expect((await server.call('GET', '/apis/storage.k8s.io')).json).toMatchObject({
      kind: 'APIGroup',
      preferredVersion: { groupVersion: 'storage.k8s.io/v1', version: 'v1' },
    })
  })
})

describe('responses', () => {
  it('have content type, length and cache control', async () => {
    const { headers, text } = await server.call('GET', MAPS)
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      'cache-control': 'no-cache, private',
    })
  })

  it('have headers but no body for HEAD', async () => {
    const get = await server.call('GET', '/version')
    const head = await server.call('HEAD', '/version')
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
    expect((await server.call('HEAD', `${MAPS}/nowhere`)).status).toBe(404)
  })

  it('SYS-4 carry warnings in Warning headers', async () => {
    const { status, headers } = await create('warned', { size: 5, colour: 'réd' })
    expect(status).toBe(201)
    expect(headers.warning).toBe('299 - "unknown field \\"size\\"", 299 - "unknown field \\"colour\\""')
  })

  it('have the correct length for characters beyond ASCII', async () => {
    const { json } = await create('unicode', { data: { name: 'Ærøskøbing 🚢' } })
    expect(json.data.name).toBe('Ærøskøbing 🚢')
    expect((await server.call('GET', `${MAPS}/unicode`)).json).toEqual(json)
  })
})

describe('bodies', () => {
  it('SYS-10 above 3 MiB are rejected with 413 or a reset and store nothing, with and without Content-Length', async () => {
    const body = JSON.stringify({ metadata: { name: 'large' }, data: { k: 'x'.repeat(3 * MEBIBYTE) } })
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
    const declaredResponse = await sendRequest(
      MAPS,
      { method: 'POST', headers: { ...headers, 'content-length': Buffer.byteLength(body) } },
      body,
    ).catch(ignoreReset)
    const chunkedResponse = await sendRequest(
      MAPS,
      { method: 'POST', headers: { ...headers, 'transfer-encoding': 'chunked' } },
      body,
    ).catch(ignoreReset)
    for (const response of [declaredResponse, chunkedResponse]) {
      if (response !== undefined) expect(response.json).toMatchObject({ code: 413, reason: 'RequestEntityTooLarge' })
    }
    expect((await server.call('GET', `${MAPS}/large`)).status).toBe(404)
    expect((await server.call('GET', '/readyz')).text).toBe('ok')
  })

  /** Ignores a reset: the server may close the connection while the client is still sending. */
  function ignoreReset(error: NodeJS.ErrnoException): undefined {
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') throw error
  }

  it('SYS-10 just below 3 MiB are read and validated', async () => {
    const { status, json } = await create('large', { data: { k: 'x'.repeat(3 * MEBIBYTE - 200) } })
    expect(status).toBe(422)
    expect(json).toMatchObject({ reason: 'Invalid', details: { kind: 'ConfigMap' } })
    expect((await create('fits', { data: { k: 'x'.repeat(MEBIBYTE - 200) } })).status).toBe(201)
  })
})

describe('a watch', () => {
  it('sends its headers immediately, before the first event', async () => {
    const response = await server.open('GET', `${MAPS}?watch=1&resourceVersion=${await readNewestVersion()}`)
    expect(response.statusCode).toBe(200)
    expect(response.headers).toMatchObject({ 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
    response.destroy()
  })

  it('sends one line of JSON per event', async () => {
    const response = await server.open(
      'GET',
      `${MAPS}?watch=1&timeoutSeconds=2&resourceVersion=${await readNewestVersion()}`,
    )
    await create('framed')
    await server.call('DELETE', `${MAPS}/framed`)
    const text = await readText(response)
    expect(text.endsWith('\n')).toBe(true)
    const events = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual([
      'ADDED framed',
      'DELETED framed',
    ])
    expect(response.complete).toBe(true)
  })

  it('SYS-3 resumes after the server ended it', async () => {
    const start = await readNewestVersion()
    await create('resumed-1')
    const firstWatch = watchFrom(server, MAPS, Number(start), '&timeoutSeconds=1')
    const firstEvents = await firstWatch.whenEnded()
    await create('resumed-2')
    const secondWatch = watchFrom(server, MAPS, firstEvents.at(-1)!.revision)
    await secondWatch.waitUntil((events) => events.length > 0)
    secondWatch.close()
    const secondEvents = await secondWatch.whenEnded()
    expect([...firstEvents, ...secondEvents].map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual([
      'ADDED resumed-1',
      'ADDED resumed-2',
    ])
  })

  it('SYS-3 ends cleanly when the server stops, and resumes after its restart', async () => {
    const firstServer = await startServer({ dataDir: join(dir, 'stopping') })
    const watch = watchFrom(firstServer, MAPS, 0)
    await firstServer.call('POST', MAPS, { metadata: { name: 'before' } })
    await watch.waitUntil((events) => events.length === 1)
    expect(await firstServer.stop()).toBe(0)
    const { revision } = (await watch.whenEnded()).at(-1)!
    const restartedServer = await startServer({ dataDir: join(dir, 'stopping') })
    try {
      const resumedWatch = watchFrom(restartedServer, MAPS, revision)
      await restartedServer.call('POST', MAPS, { metadata: { name: 'after' } })
      await resumedWatch.waitUntil((events) => events.length === 1)
      resumedWatch.close()
      expect((await resumedWatch.whenEnded())[0]!.object.metadata.name).toBe('after')
    } finally {
      await restartedServer.stop()
    }
  })

  it('SYS-3 from a compacted version receives an ERROR event with 410, and ends', async () => {
    const compactingServer = await startServer({
      dataDir: join(dir, 'compacting'),
      flags: ['--history-minutes', '0.0001'],
    })
    try {
      const { json } = await compactingServer.call('POST', MAPS, { metadata: { name: 'a' } })
      let listResponse: any
      for (let n = 0; listResponse?.code !== 410; n++) {
        expect(n).toBeLessThan(2_000)
        await compactingServer.call(
          'PATCH',
          `${MAPS}/a`,
          { data: { n: String(n) } },
          { 'content-type': 'application/merge-patch+json' },
        )
        const version = json.metadata.resourceVersion
        listResponse = (
          await compactingServer.call('GET', `${MAPS}?resourceVersion=${version}&resourceVersionMatch=Exact`)
        ).json
      }
      const events = await watchFrom(compactingServer, MAPS, Number(json.metadata.resourceVersion)).whenEnded()
      expect(events).toMatchObject([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }])
    } finally {
      await compactingServer.stop()
    }
  })
})

describe('a restart', () => {
  const VAC = '/apis/storage.k8s.io/v1/volumeattributesclasses'
  const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
  const CLASSES_DISABLED = ['v1', 'v1beta1', 'v1alpha1']
    .map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
    .join(',')

  it('SYS-15 with an API disabled keeps its objects, and serves them when it is enabled again', async () => {
    const dataDir = join(dir, 'disabled-api')
    const silver = { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters: { iops: '1' } }
    const claim = {
      metadata: { name: 'orders' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        volumeAttributesClassName: 'silver',
      },
    }

    const enabledServer = await startServer({ dataDir, command: 'server' })
    const storedClass = (await enabledServer.call('POST', VAC, silver)).json
    const claimBefore = (await enabledServer.call('POST', CLAIMS, claim)).json
    await enabledServer.stop()

    const disabledServer = await startServer({
      dataDir,
      command: 'server',
      flags: ['--runtime-config', CLASSES_DISABLED],
    })
    expect((await disabledServer.call('GET', `${VAC}/silver`)).json).toMatchObject({ code: 404, reason: 'NotFound' })
    expect((await disabledServer.call('POST', VAC, silver)).status).toBe(404)
    expect((await disabledServer.call('GET', `${CLAIMS}/orders`)).json).toEqual(claimBefore)
    await disabledServer.stop()

    const restartedServer = await startServer({ dataDir, command: 'server' })
    expect((await restartedServer.call('GET', `${VAC}/silver`)).json).toEqual(storedClass)
    await restartedServer.stop()
  })
})
