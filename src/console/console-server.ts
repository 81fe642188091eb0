// Handles the requests of the console: every request passes the checks of Host, Origin, body type and session before its route.
// protocol.ts has the messages; listener.ts listens and loads this file with the first request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { methodNotAllowed, noSuchPath } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { createTransport } from '../client/http/transport.ts'
import type { Connection } from '../client/index.ts'
import { createForward } from './forward/forward.ts'
import { createAssets } from './http/assets.ts'
import { readJsonObject } from './http/body.ts'
import { checkBodyType, checkHost, checkOrigin } from './http/guard.ts'
import { sendError, sendJson, toApiError } from './http/respond.ts'
import { createSessions } from './http/session.ts'
import type { SessionAnswer } from './protocol.ts'
import { createCollections } from './watch/collections.ts'
import { createUpgrades, rejectUpgrade } from './watch/upgrade.ts'
import { serveWatchSocket } from './watch/watch-socket.ts'

export interface ConsoleServerOptions {
  readonly connection: Connection
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The directory of the built page. Default: dist/console/. */
  readonly pageDir?: string
}

/** What the listener knows. */
export interface ConsoleAddress {
  readonly port: number
  /** The secret part of the printed URL. */
  readonly token: string
}

export interface ConsoleServer {
  handle(incoming: IncomingMessage, response: ServerResponse): void
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): void
}

const USER_AGENT = 'stowage-console'
const FORWARD_PREFIX = '/k8s'

export function createConsoleServer(options: ConsoleServerOptions, { port, token }: ConsoleAddress): ConsoleServer {
  const { connection, clock, log } = options
  const transport = createTransport({ connection, clock, userAgent: USER_AGENT })
  const assets = createAssets(options.pageDir)
  const forward = createForward({ transport, invalidateCredentials: () => connection.invalidateCredentials?.() })
  const sessions = createSessions({ clock, port, token })
  const collections = createCollections({ ...options, transport })
  const upgrades = createUpgrades()

  async function route(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    checkHost(incoming, port)
    const target = incoming.url ?? '/'
    const path = target.split('?', 1)[0] as string
    if (path === '/session') return handleSession(incoming, response)
    const isForwarded = path.startsWith(`${FORWARD_PREFIX}/`)
    if (!isForwarded && !path.startsWith('/data/')) return assets.serve(incoming, response, path)
    checkOrigin(incoming)
    checkBodyType(incoming)
    sessions.require(incoming)
    if (isForwarded) return forward(incoming, response, target.slice(FORWARD_PREFIX.length))
    throw noSuchPath()
  }

  async function handleSession(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    checkOrigin(incoming)
    checkBodyType(incoming)
    if (incoming.method === 'POST') {
      const { cookie, expiresAt } = sessions.open((await readJsonObject(incoming)).token)
      const answer: SessionAnswer = { expiresAt }
      return sendJson(response, answer, { 'set-cookie': cookie })
    }
    if (incoming.method === 'DELETE') return sendJson(response, {}, { 'set-cookie': sessions.end(incoming) })
    throw methodNotAllowed()
  }

  async function openWatchSocket(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    checkHost(incoming, port)
    checkOrigin(incoming, { isUpgrade: true })
    const { signal } = sessions.require(incoming)
    if (incoming.url?.split('?', 1)[0] !== '/watch') throw noSuchPath()
    const webSocket = await upgrades.upgrade(incoming, socket, head)
    serveWatchSocket({ socket: webSocket, collections, clock, signal })
  }

  return {
    handle(incoming, response) {
      route(incoming, response).catch((error: unknown) => sendError(response, error, log))
    },
    upgrade(incoming, socket, head) {
      socket.on('error', () => socket.destroy())
      openWatchSocket(incoming, socket, head).catch((error: unknown) => rejectUpgrade(socket, toApiError(error, log)))
    },
    close() {
      sessions.endAll()
      upgrades.close()
      collections.close()
      transport.close()
    },
  }
}
