// Tests hostile clients over HTTPS: truncated, oversized and slow bodies, and requests that are not HTTP. The server must
// respond or close the connection, and stay ready for other clients.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { createDice, type Dice } from './dice.ts'
import { createGenerator, type FuzzRequest } from './generate-requests.ts'

const SEED = Number(process.env.FUZZ_SEED ?? 20_260_101)
const REQUESTS = Number(process.env.FUZZ_HTTPS_REQUESTS ?? 1_600)
const RAW_REQUESTS = 400
const BODY_BYTES_MAX = 3 * 1024 * 1024
const READY_EVERY = 20

let dataDir: string
let server: RunningServer

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'stowage-fuzz-'))
  server = await startServer({ dataDir })
})
afterAll(async () => {
  await server?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

describe('server with hostile clients', () => {
  it(`SYS-10 returns no 5xx for ${REQUESTS} generated requests, except 504 for a version that does not exist yet (FUZZ_SEED=${SEED})`, async () => {
    const generate = createGenerator(createDice(SEED))
    for (let i = 0; i < REQUESTS; i++) {
      const request = generate({ objects: [], revision: 100 })
      if (!canBeSent(request) || /watch=/.test(request.query)) continue
      const status = await sendOverHttps(request)
      const replay = `seed ${SEED}, request ${i}: ${JSON.stringify({ ...request, body: undefined }).slice(0, 500)}`
      expect(status === 504 || status < 500, `${replay} returned ${status}`).toBe(true)
      if (status === 504) expect(request.query, replay).toMatch(/resourceVersion|continue/)
      if (i % READY_EVERY === 0) await expectReady()
    }
  }, 240_000)

  it(`SYS-19 stays ready after ${RAW_REQUESTS} broken or abandoned connections (FUZZ_SEED=${SEED})`, async () => {
    const dice = createDice(SEED)
    for (let i = 0; i < RAW_REQUESTS; i++) {
      const createRequest = dice.pick(BROKEN_REQUESTS)
      await sendRaw(createRequest(dice, server.token), { hangUp: dice.oneIn(2) })
      if (i % READY_EVERY === 0) await expectReady()
    }
    await expectReady()
  }, 240_000)

  it('SYS-10 returns 413 for a body above 3 MiB, with and without Content-Length', async () => {
    const revisionBefore = await readRevision()
    const body = Buffer.from(`{"metadata":{"name":"big"},"data":{"a":"${'x'.repeat(BODY_BYTES_MAX)}"}}`)
    const declaredResponse = await server.call('POST', '/api/v1/namespaces/default/configmaps', body)
    expect(declaredResponse.status).toBe(413)
    expect(declaredResponse.json).toMatchObject({ kind: 'Status', code: 413, reason: 'RequestEntityTooLarge' })
    const responseText = await sendRaw(
      [
        `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
        ...Array.from({ length: 52 }, () => `10000\r\n${'y'.repeat(0x10000)}\r\n`),
      ],
      { hangUp: false },
    )
    expect(responseText).toMatch(/^HTTP\/1\.1 413 /)
    expect(await readRevision()).toBe(revisionBefore)
    await expectReady()
  })

  it('SYS-19 serves other clients while some send slowly', async () => {
    const slowSockets = await Promise.all(Array.from({ length: 30 }, () => openSlowRequest()))
    await expectReady()
    const { status } = await server.call('POST', '/api/v1/namespaces/default/configmaps', {
      metadata: { name: 'quick' },
    })
    expect(status).toBe(201)
    for (const socket of slowSockets) socket.destroy()
    await expectReady()
  })

  it('SYS-4 accepts one of many concurrent updates of one version, and returns 409 for the others', async () => {
    const path = '/api/v1/namespaces/default/configmaps'
    const { json: base } = await server.call('POST', path, { metadata: { name: 'contested' }, data: { n: '0' } })
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, i) => server.call('PUT', `${path}/contested`, { ...base, data: { n: `w${i}` } })),
    )
    const winners = responses.filter(({ status }) => status === 200)
    expect(winners).toHaveLength(1)
    for (const { status, json } of responses.filter((response) => !winners.includes(response))) {
      expect(status).toBe(409)
      expect(json).toMatchObject({ reason: 'Conflict', details: { name: 'contested', kind: 'configmaps' } })
    }
    const { text } = await server.call('GET', `${path}/contested`)
    expect(text).toBe(winners[0]!.text)
  })

  it('logs no errors during these tests', () => {
    expect(
      server
        .log()
        .split('\n')
        .filter((line) => /"level":"(error|fatal)"/.test(line)),
    ).toEqual([])
  })
})

const readRevision = async (): Promise<string> =>
  (await server.call('GET', '/api/v1/namespaces/default/configmaps')).json.metadata.resourceVersion

async function expectReady(): Promise<void> {
  const { status, text } = await server.call('GET', '/readyz')
  expect({ status, text }).toEqual({ status: 200, text: 'ok' })
}

/** Whether the Node.js HTTP client can send the request. BROKEN_REQUESTS covers the others. */
const canBeSent = ({ method, path, headers }: FuzzRequest): boolean =>
  /^[A-Z]+$/.test(method) &&
  !['CONNECT', 'BREW'].includes(method) &&
  /^\/[\x21-\x7e]*$/.test(path) &&
  Object.values(headers).every((value) => /^[\x20-\x7e]*$/.test(value))

async function sendOverHttps({ method, path, query, headers, body }: FuzzRequest): Promise<number> {
  const { status } = await server.call(method, query ? `${path}?${query}` : path, body, headers)
  return status
}

type BrokenRequest = (dice: Dice, token: string) => (string | Uint8Array)[]

const postRequest = (token: string, headers: string) =>
  `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n${headers}`

const BROKEN_REQUESTS: readonly BrokenRequest[] = [
  () => ['\r\n\r\n\r\n'],
  () => ['GARBAGE\r\n\r\n'],
  () => [Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 7) % 256))],
  () => ['GET / HTTP/9.9\r\n\r\n'],
  () => ['GET  /api HTTP/1.1\r\n\r\n'],
  () => ['GET /api HTTP/1.1\r\n\r\n'], // no Host
  () => ['get /api HTTP/1.1\r\nHost: x\r\n\r\n'],
  () => [`GET /${'a'.repeat(2 * 1024 * 1024)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  () => [`GET / HTTP/1.1\r\nHost: x\r\n${'X-Flood: y\r\n'.repeat(50_000)}\r\n`],
  () => [`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'z'.repeat(2 * 1024 * 1024)}\r\n\r\n`],
  () => ['GET / HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n'],
  () => ['GET / HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n'],
  () => ['GET / HTTP/1.1\r\nHost: x\r\n folded: yes\r\n\r\n'],
  () => ['GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  () => ['GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n'],
  () => ['GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \u00ff\u00fe\r\n\r\n'],
  () => ['CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
  () => ['OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'],
  () => ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  (_, token) => [postRequest(token, 'Content-Length: 100\r\n\r\n'), '{"metadata":'], // less than Content-Length
  (_, token) => [postRequest(token, 'Content-Length: 2\r\n\r\n'), '{}{}{}{}'], // more than Content-Length
  (_, token) => [postRequest(token, 'Content-Length: -1\r\n\r\n{}')],
  (_, token) => [postRequest(token, 'Content-Length: 99999999999999999999\r\n\r\n{}')],
  (_, token) => [postRequest(token, 'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}')],
  (_, token) => [postRequest(token, 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n')],
  (_, token) => [postRequest(token, 'Transfer-Encoding: chunked\r\n\r\n'), 'zz\r\n{}\r\n'],
  (_, token) => [postRequest(token, 'Transfer-Encoding: chunked\r\n\r\n'), 'ffffffffffffffff\r\n{}'],
  (_, token) => [postRequest(token, 'Transfer-Encoding: chunked\r\n\r\n'), '2\r\n{}\r\n', '5\r\n{"a"'],
  (_, token) => [postRequest(token, 'Transfer-Encoding: gzip, chunked\r\n\r\n'), '2\r\n{}\r\n0\r\n\r\n'],
  (_, token) => [
    `GET /api/v1/pods?watch=1 HTTP/1.1\r
  Host: x\r
  Authorization: Bearer ${token}\r
  \r
  `,
  ], // a watch that disconnects
  (_, token) => [`GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(200)], // pipelined
  (dice) => [
    `${dice.pick(['GET', 'PUT'])} /api/v1/nodes/%${dice.pick(['', '0', 'zz', '00', 'ff'])} HTTP/1.1\r\nHost: x\r\n\r\n`,
  ],
]

/** Writes the chunks, then disconnects, or waits until the server responds or closes the connection. */
async function sendRaw(chunks: readonly (string | Uint8Array)[], { hangUp }: { hangUp: boolean }): Promise<string> {
  const socket = await openSocket()
  let responseText = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    responseText += text
  })
  socket.on('error', () => {}) // the server may reset the connection
  const closeEvent = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const firstData = new Promise<void>((resolve) => socket.once('data', () => resolve()))
  for (const chunk of chunks)
    if (!socket.destroyed) socket.write(typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk)
  if (!hangUp) {
    socket.end()
    await Promise.race([firstData, closeEvent])
  }
  socket.destroy()
  await closeEvent
  return responseText
}

function openSocket(): Promise<TLSSocket> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), ca: server.ca }, () => resolve(socket))
    socket.once('error', reject)
  })
}

async function openSlowRequest(): Promise<TLSSocket> {
  const socket = await openSocket()
  socket.on('error', () => {})
  socket.write(postRequest(server.token, 'Content-Length: 1000\r\n\r\n'))
  socket.write('{"metadata":')
  return socket
}
