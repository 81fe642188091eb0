import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { loadOrCreatePki, type Pki } from '../security/index.ts'
import { listenHttps } from './https-listener.ts'
import { type ApiRequest, textResponse } from './messages.ts'

describe('the HTTPS listener', () => {
  const dir = mkdtempSync(join(tmpdir(), 'stowage-listener-'))
  let pki: Pki
  beforeAll(async () => {
    pki = await loadOrCreatePki({ dir, clock: systemClock() })
  })
  afterAll(() => rmSync(dir, { recursive: true }))

  const listen = (handle: (request: ApiRequest) => ReturnType<typeof textResponse>, requestTimeoutMs?: number) =>
    listenHttps({
      handle: async (request) => {
        await request.readBody()
        return handle(request)
      },
      pki,
      host: '127.0.0.1',
      port: 0,
      clock: systemClock(),
      log: silentLog,
      requestTimeoutMs,
    })
  /** Sends bytes on a new connection and returns all that the server sends until it closes the connection. */
  const exchange = async (port: number, bytes: string): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port, ca: pki.caCert })
    await once(socket, 'secureConnect')
    socket.write(bytes)
    return text(socket)
  }
  const aRequest = (path: string, headers: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`

  it('SYS-19 returns 408 and closes the connection if a request does not arrive in time', async () => {
    const listener = await listen(() => textResponse(200, 'ok'), 50)
    const unfinishedBody = aRequest('/', 'Content-Length: 10\r\n')
    const unfinishedHeader = 'GET / HTTP/1.1\r\nHost: localhost\r\n'
    const responses = await Promise.all(
      [`${unfinishedBody}abc`, unfinishedHeader].map((bytes) => exchange(listener.port, bytes)),
    )
    for (const response of responses) expect(response).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    await listener.stop()
  })

  it('SYS-19 handles pipelined requests in order', async () => {
    const paths: string[] = []
    const listener = await listen(({ path }) => {
      paths.push(path)
      return textResponse(200, `response to ${path}`)
    })
    const requests = ['/1', '/2', '/3'].map((path) => aRequest(path, path === '/3' ? 'Connection: close\r\n' : ''))
    const response = await exchange(listener.port, requests.join(''))
    expect(response.match(/response to \/\d/g)).toEqual(['response to /1', 'response to /2', 'response to /3'])
    expect(paths).toEqual(['/1', '/2', '/3'])
    await listener.stop()
  })
})
