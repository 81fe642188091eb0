// Test fixture: a console for an API server on an HTTPS port, and a browser client with cookie, Origin and the WebSocket of a
// tab.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { WebSocket } from 'ws'
import { unauthorized } from '../apiserver/security/errors.ts'
import type { ServerFixtureOptions } from '../apiserver/server.fixture.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { loadConsoleOptions } from '../cli/commands/console/load-options.ts'
import { createHttpFixture } from '../client/http/http.fixture.ts'
import { createTransport } from '../client/http/transport.ts'
import type { Connection } from '../client/index.ts'
import { listenConsole } from './listener.ts'
import type { WatchCommand, WatchMessage } from './protocol.ts'

const WAIT = { timeout: 20_000, interval: 10 }

/**
 * Options of a server that authenticates tokens: `viewer` may read, `stranger` has no permissions, `wrong` is rejected. Other
 * requests are those of the admin.
 */
export const withUsers = (): ServerFixtureOptions => ({
  authenticator: {
    authenticate({ authorization = '' }) {
      if (authorization === 'Bearer wrong') return { is: 'rejected', status: unauthorized('unknown token') }
      const name = /^Bearer (viewer|stranger)$/.exec(authorization)?.[1] ?? 'admin'
      return { is: 'authenticated', user: { name, groups: ['system:authenticated'] } }
    },
    authenticateToken: () => undefined,
  },
  authorizer: {
    authorize(attributes) {
      const { user, verb } = attributes
      // All users may read discovery and review their own access.
      const isOpen = attributes.path !== undefined || attributes.resource.startsWith('selfsubject')
      const isRead = ['get', 'list', 'watch'].includes(verb)
      return { allowed: user.name === 'admin' || isOpen || (user.name === 'viewer' && isRead) }
    },
  },
})

export interface ConsoleResponse {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: any
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
}

export async function startConsole(connection: Connection, { clock = systemClock() }: { clock?: Clock } = {}) {
  const pageDir = await mkdtemp(join(tmpdir(), 'stowage-console-'))
  await writeFile(join(pageDir, 'index.html'), '<!doctype html><title>page</title>')
  await writeFile(join(pageDir, 'app-1.js'), 'plain')
  await writeFile(join(pageDir, 'app-1.js.br'), 'brotli')
  const listener = await listenConsole({
    port: 0,
    portFlag: '--port',
    loadOptions: async () => ({
      ...(await loadConsoleOptions({ connection, namespace: 'default', clock, random: Math.random, log: silentLog })),
      pageDir,
    }),
  })
  onTestFinished(async () => {
    await listener.close()
    await rm(pageDir, { recursive: true })
  })
  const origin = `http://127.0.0.1:${listener.port}`
  const token = listener.url.split('#token=')[1]!
  let cookie: string | undefined

  /** Sends only Host and these headers. An undefined header is omitted. */
  function send(path: string, { method = 'GET', headers = {}, body }: RequestOptions = {}): Promise<ConsoleResponse> {
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(
        `${origin}${path}`,
        { method, headers: sent as Record<string, string> },
        (incoming) => {
          let text = ''
          incoming.setEncoding('utf8')
          incoming.on('data', (chunk) => {
            text += chunk
          })
          incoming.on('end', () => {
            const isJson = incoming.headers['content-type']?.includes('json')
            resolve({ status: incoming.statusCode!, headers: incoming.headers, body: isJson ? JSON.parse(text) : text })
          })
        },
      )
      outgoing.on('error', reject)
      outgoing.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
    })
  }

  const fixture = {
    listener,
    origin,
    token,
    send,
    get cookie() {
      return cookie
    },
    async signIn(): Promise<ConsoleResponse> {
      const response = await fixture.send('/session', {
        method: 'POST',
        headers: { origin, 'content-type': 'application/json' },
        body: { token },
      })
      cookie = response.headers['set-cookie']?.[0]?.split(';')[0]
      return response
    },
    /** A request as the page sends it. */
    request: (path: string, { method = 'GET', headers = {}, body }: RequestOptions = {}) =>
      send(path, {
        method,
        headers: {
          cookie,
          'sec-fetch-site': 'same-origin',
          ...(method === 'GET' ? {} : { origin }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body,
      }),
    openTab: (headers: Record<string, string> = {}) =>
      openTab(listener.port, { cookie: cookie ?? '', origin, ...headers }),
  }
  return fixture
}

/** A console for a Stowage server, with a session. */
export async function createConsoleFixture(options: ServerFixtureOptions = {}) {
  const server = await createHttpFixture(options)
  onTestFinished(() => server.stop())
  const consoleFixture = await startConsole(server.connection)
  await consoleFixture.signIn()
  return { ...server, console: consoleFixture }
}

async function openTab(port: number, headers: Record<string, string>) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/watch`, { headers })
  const messages: WatchMessage[] = []
  let closeCode: number | undefined
  socket.on('message', (data) => void messages.push(JSON.parse(String(data))))
  socket.on('close', (code) => {
    closeCode = code
  })
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  onTestFinished(() => socket.terminate())
  return {
    socket,
    messages,
    send: (command: WatchCommand) => socket.send(JSON.stringify(command)),
    get closeCode() {
      return closeCode
    },
    /** Waits for a message, and discards it and all earlier ones. */
    async until(matches: (message: WatchMessage) => boolean): Promise<WatchMessage> {
      return vi.waitFor(() => {
        const index = messages.findIndex(matches)
        expect(index, JSON.stringify(messages)).toBeGreaterThanOrEqual(0)
        return messages.splice(0, index + 1).at(-1)!
      }, WAIT)
    },
  }
}

/** A connection to an API server without the group stowage.dev, like a stock server. */
export async function withoutStowageGroup(connection: Connection): Promise<Connection> {
  const transport = createTransport({ connection, clock: systemClock() })
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const path = incoming.url!
    if (path.startsWith('/apis/stowage.dev')) {
      response.writeHead(404, { 'content-type': 'text/plain' })
      return void response.end('404 page not found')
    }
    const body = Buffer.concat(chunks).toString('utf8')
    const type = incoming.headers['content-type']
    const headers: Record<string, string> = type ? { 'content-type': type } : {}
    const upstreamResponse = await transport.open({
      method: incoming.method!,
      path,
      headers,
      ...(body ? { body } : {}),
    })
    response.writeHead(upstreamResponse.statusCode!, { 'content-type': upstreamResponse.headers['content-type'] })
    upstreamResponse.pipe(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    transport.close()
  })
  return { server: `http://127.0.0.1:${(server.address() as { port: number }).port}`, credentials: async () => ({}) }
}
