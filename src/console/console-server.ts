// Handles the console's requests: checks Host, Origin, body type and session, then calls the route. protocol.ts defines the
// messages; listener.ts loads this file on the first request.
import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { methodNotAllowed, noSuchPath } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { createTransport } from '../client/http/transport.ts'
import { type Connection, httpClient } from '../client/index.ts'
import { createDataRoutes } from './data/data-routes.ts'
import { createHistory } from './data/history.ts'
import type { Insight } from './data/insight.ts'
import { createForward } from './forward/forward.ts'
import { createAssets } from './http/assets.ts'
import { readJsonObject } from './http/body.ts'
import { checkBodyType, checkHost, checkOrigin } from './http/guard.ts'
import { sendError, sendJson, toApiError } from './http/respond.ts'
import { createSessions } from './http/session.ts'
import type { SessionResponse } from './protocol.ts'
import { createCollections } from './watch/collections.ts'
import { createUpgrades, rejectUpgrade } from './watch/upgrade.ts'
import { serveWatchSocket } from './watch/watch-socket.ts'

export interface ConsoleServerOptions {
  readonly connection: Connection
  /** The kubeconfig's namespace. */
  readonly namespace: string
  /** The file and the context of the credentials, for the commands that the page shows. */
  readonly kubeconfig?: string
  readonly context?: string
  /** The console's version. */
  readonly version: string
  readonly insight: Insight
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The directory of the built page. Default: dist/console/. */
  readonly pageDir?: string
}

/** Values that the listener provides. */
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
  const { connection, clock, log, insight } = options
  const stop = new AbortController()
  const transport = createTransport({ connection, clock, userAgent: USER_AGENT })
  const client = httpClient({ connection, clock, userAgent: USER_AGENT })
  const assets = createAssets(options.pageDir)
  const forward = createForward({ transport, invalidateCredentials: () => connection.invalidateCredentials?.() })
  const sessions = createSessions({ clock, port, token })
  const collections = createCollections({ ...options, transport })
  const upgrades = createUpgrades()
  const history = createHistory({ transport, clock })
  const serveData = createDataRoutes({
    ...{ client, transport, clock, insight, history, signal: stop.signal, server: connection.server },
    ...{ namespace: options.namespace, version: options.version },
    ...{ kubeconfig: options.kubeconfig, context: options.context },
  })
  setMaxListeners(0, stop.signal) // every request adds a listener
  history
    .run(stop.signal)
    .catch((error: unknown) => log.error({ err: error }, 'cannot continue taking samples for the history'))

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
    return serveData(incoming, response)
  }

  async function handleSession(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    checkOrigin(incoming)
    checkBodyType(incoming)
    if (incoming.method === 'POST') {
      const { cookie, expiresAt } = sessions.open((await readJsonObject(incoming)).token)
      const body: SessionResponse = { expiresAt }
      return sendJson(response, body, { 'set-cookie': cookie })
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
      stop.abort()
      sessions.endAll()
      upgrades.close()
      collections.close()
      insight.close()
      client.close()
      transport.close()
    },
  }
}
