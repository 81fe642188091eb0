import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { createTransport } from './transport.ts'

let server: Server
beforeEach(async () => {
  // A response to /watch stays open.
  server = createServer((request, response) => {
    response.flushHeaders()
    if (request.url !== '/watch') response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => void server.close())

it('the transport counts and closes the sockets of an earlier client certificate', async () => {
  let cert = 'first'
  const { port } = server.address() as AddressInfo
  const transport = createTransport({
    connection: { server: `http://127.0.0.1:${port}`, credentials: async () => ({ cert, key: 'key' }) },
    clock: systemClock(),
  })
  const watch = await transport.open({ method: 'GET', path: '/watch' })
  expect(transport.countSockets()).toBe(1)
  cert = 'second'
  await transport.call({ method: 'GET', path: '/' })
  expect(transport.countSockets()).toBe(2)
  const watchClosed = new Promise<void>((resolve) => watch.on('close', resolve))
  transport.close()
  await watchClosed
})
