// Tests watches over WebSocket on a real port.

import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type InProcessServer, startInProcessServer } from '../../../test/helpers/in-process-server.ts'
import type { Json } from '../server.fixture.ts'

describe('watches over WebSocket', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcessServer()
  })
  afterAll(() => server.stop())

  const connect = (path: string, protocols: string[] = [], headers: Record<string, string> = {}) =>
    new WebSocket(`wss://127.0.0.1:${server.port}${path}`, protocols, { ca: server.ca, headers })
  const bearerHeader = () => ({ authorization: `Bearer ${server.token}` })
  const nextMessage = (socket: WebSocket) =>
    new Promise<Json>((resolve, reject) => {
      socket.once('message', (data) => resolve(JSON.parse(String(data))))
      socket.once('unexpected-response', (_request, response) =>
        reject(Object.assign(new Error('the upgrade was rejected'), { status: response.statusCode })),
      )
      socket.once('error', reject)
    })

  it('send one event per frame and select a requested subprotocol', async () => {
    const socket = connect('/api/v1/namespaces?watch=1', ['base64.binary.k8s.io'], bearerHeader())
    const firstEvent = await nextMessage(socket)
    expect(firstEvent).toMatchObject({ type: 'ADDED', object: { kind: 'Namespace', metadata: { name: 'default' } } })
    expect(socket.protocol).toBe('base64.binary.k8s.io')
    const shopEvent = new Promise<Json>((resolve) => {
      socket.on('message', (data) => {
        const event = JSON.parse(String(data))
        if (event.object.metadata.name === 'shop') resolve(event)
      })
    })
    await server.handle('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    expect((await shopEvent).type).toBe('ADDED')
    const pong = once(socket, 'pong')
    socket.ping('alive')
    expect(String((await pong)[0])).toBe('alive')
    socket.terminate()
  })

  it('accept a token in the name of a subprotocol, as sent by browsers', async () => {
    const encodedToken = Buffer.from(server.token).toString('base64url')
    const socket = connect('/api/v1/namespaces?watch=1', [
      `base64url.bearer.authorization.k8s.io.${encodedToken}`,
      'v1.watch',
    ])
    expect((await nextMessage(socket)).type).toBe('ADDED')
    expect(socket.protocol).toBe('v1.watch')
    socket.terminate()
  })

  it('are rejected with a plain HTTP response for anonymous users, unknown resources and requests other than watches', async () => {
    await expect(nextMessage(connect('/api/v1/namespaces?watch=1'))).rejects.toMatchObject({ status: 403 })
    await expect(nextMessage(connect('/api/v1/nothings?watch=1', [], bearerHeader()))).rejects.toMatchObject({
      status: 404,
    })
    await expect(nextMessage(connect('/api/v1/namespaces', [], bearerHeader()))).rejects.toMatchObject({ status: 400 })
  })
})
