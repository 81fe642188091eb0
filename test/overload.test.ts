// Attacks a listening server with headers that are too long, unfinished bodies, and pipelined requests whose responses are not read. Latency and memory
// under load are measured by `npm run bench -- overload`.
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type InProcessServer, startInProcessServer } from './helpers/in-process-server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CONNECTIONS = 40

let server: InProcessServer
beforeAll(async () => {
  server = await startInProcessServer()
  const data = { text: 'x'.repeat(100_000) }
  for (let i = 0; i < 40; i++) await server.handle('POST', MAPS, { metadata: { name: `map-${i}` }, data })
})
afterAll(() => server.stop())

/** Opens connections, and sends the text on each of them. */
const attack = (text: string) =>
  Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect({ host: '127.0.0.1', port: server.port, ca: server.ca })
      socket.on('error', () => {}) // the server may close the connection at any time
      await new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()))
      socket.write(text)
      return socket
    }),
  )
const destroyAll = (sockets: readonly TLSSocket[]) => {
  for (const socket of sockets) socket.destroy()
}
const requestText = (method: string, path: string, headers: string) =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.token}\r\n${headers}\r\n`
const readUntilClosed = (socket: TLSSocket) =>
  new Promise<string>((resolve) => {
    let response = ''
    if (socket.closed) return resolve(response)
    socket.on('data', (data) => (response += data.toString('latin1')))
    socket.once('close', () => resolve(response))
  })

/** Returns the status of a read on a separate connection. */
const readMap = () =>
  new Promise<number>((resolve, reject) => {
    server.open('GET', `${MAPS}/map-1`).then((response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode!))
    }, reject)
  })

const readMetric = async (pattern: RegExp): Promise<number> => {
  const text = await server.server.metrics.registry.metrics()
  return Number(pattern.exec(text)?.[1] ?? 0)
}
const LISTS = /^apiserver_request_total\{verb="LIST".*resource="configmaps".*\} (\d+)$/m
const MUTATING = /^apiserver_current_inflight_requests\{.*mutating.*\} (\d+)$/m

describe('an attack', () => {
  it('SYS-19 with headers that are too long loses its connection, with 431 if a response arrives', async () => {
    const sockets = await attack(`GET /api HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(900_000)}`)
    const responses = await Promise.all(sockets.map(readUntilClosed))
    for (const response of responses) expect(response).toMatch(/^HTTP\/1\.1 431|^$/)
    expect(await readMap()).toBe(200)
  })

  it('SYS-19 with unfinished bodies has no request in flight', async () => {
    const head = requestText('POST', MAPS, 'content-type: application/json\r\ncontent-length: 2000000\r\n')
    const sockets = await attack(`${head}{`)
    expect(await readMap()).toBe(200)
    expect(await readMetric(MUTATING)).toBe(0)
    destroyAll(sockets)
  })

  it('SYS-19 with pipelined lists that are not read runs one list per connection', async () => {
    const listsBefore = await readMetric(LISTS)
    const sockets = await attack(requestText('GET', MAPS, '').repeat(12))
    for (const socket of sockets) socket.pause()
    while ((await readMetric(LISTS)) < listsBefore + CONNECTIONS) expect(await readMap()).toBe(200)
    for (let i = 0; i < 20; i++) expect(await readMap()).toBe(200)
    // A list of 4 MB exceeds the buffers of a connection, so no second list starts.
    expect(await readMetric(LISTS)).toBe(listsBefore + CONNECTIONS)
    destroyAll(sockets)
  })

  it('SYS-19 with more pipelined requests than allowed loses its connection', async () => {
    const sockets = await attack(requestText('GET', MAPS, '').repeat(40))
    await Promise.all(sockets.map(readUntilClosed))
    expect(await readMap()).toBe(200)
  })
})
