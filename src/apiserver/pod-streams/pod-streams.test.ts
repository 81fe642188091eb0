import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createServerFixture } from '../server.fixture.ts'
import type { NodeResponse } from './node-connection.ts'

const POD = '/api/v1/namespaces/default/pods/p'

/** Starts a server with a pod on a node, whose agent returns `nodeResponse` to every request. */
async function startServer(nodeResponse: NodeResponse) {
  const server = await createServerFixture({ nodeConnections: { send: async () => nodeResponse } })
  await server.post('/api/v1/nodes', { metadata: { name: 'node-1' } })
  await server.post('/api/v1/namespaces/default/pods', {
    metadata: { name: 'p' },
    spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'busybox' }] },
  })
  const handle = (url: string, headers: Record<string, string>) =>
    server.server.handle({
      method: 'GET',
      path: url.split('?')[0]!,
      query: new URLSearchParams(url.split('?')[1]),
      headers,
      headerNames: () => Object.keys(headers),
      headerValues: (name) => (headers[name] === undefined ? [] : [headers[name]]),
      readBody: async () => new Uint8Array(),
    })
  return { clock: server.clock, handle }
}

describe('the handler of pod streams', () => {
  it('SYS-26 drops the session of a client that does not take it over within 10 s', async () => {
    const socket = new PassThrough()
    const response = { headers: {} } as IncomingMessage
    const { clock, handle } = await startServer({ is: 'upgraded', response, socket, head: Buffer.alloc(0) })
    const { status } = await handle(`${POD}/exec?command=ls&stdout=true`, { upgrade: 'SPDY/3.1' })
    expect(status).toBe(101)
    await clock.advance(9_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  it('SYS-26 keeps the session of a client that has taken it over', async () => {
    const socket = new PassThrough()
    const response = { headers: {} } as IncomingMessage
    const { clock, handle } = await startServer({ is: 'upgraded', response, socket, head: Buffer.alloc(0) })
    const { tunnel } = await handle(`${POD}/exec?command=ls&stdout=true`, { upgrade: 'SPDY/3.1' })
    const client = new PassThrough()
    tunnel!(client, Buffer.alloc(0))
    await clock.advance(60_000)
    expect(socket.destroyed).toBe(false)
    client.destroy()
  })

  it('SYS-26 drops the log of a client that does not take it over within 10 s', async () => {
    const response = Object.assign(new PassThrough(), { statusCode: 200, headers: {} })
    const { clock, handle } = await startServer({ is: 'response', response: response as never })
    expect((await handle(`${POD}/log?follow=true`, {})).status).toBe(200)
    await clock.advance(10_000)
    expect(response.destroyed).toBe(true)
  })
})
