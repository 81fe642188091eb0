// Listens on the loopback address and creates the URL with its token. Loads the rest of the console on the first request, so that
// an unused console costs only a socket.
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { UsageError } from '../base/usage-error.ts'
import type { ConsoleServer, ConsoleServerOptions } from './console-server.ts'
import { DEFAULT_PORT } from './default-port.ts'

export interface ConsoleListener {
  readonly port: number
  /** The URL with the token. */
  readonly url: string
  /** Loads the console before the first request, so that it starts to take samples. */
  load(): void
  close(): Promise<void>
}

export interface ListenOptions {
  /** 0 for a free port. Undefined for DEFAULT_PORT, or a free one if it is in use. */
  readonly port: number | undefined
  /** The flag that sets the port, for error messages. */
  readonly portFlag: string
  /** Called on the first request or by `load`, and again after a failure. */
  loadOptions(): Promise<ConsoleServerOptions>
}

const HOST = '127.0.0.1'
const TOKEN_BYTES = 32
/** Further connections are closed. Browsers open six per host and one per tab for watches. */
const CONNECTIONS_MAX = 512

/** Throws a UsageError if it cannot listen on the given port. */
export async function listenConsole({ port, portFlag, loadOptions }: ListenOptions): Promise<ConsoleListener> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  let listeningPort = 0
  let loading: Promise<ConsoleServer> | undefined
  const load = () => {
    loading ??= (async () => {
      const [{ createConsoleServer }, options] = await Promise.all([import('./console-server.ts'), loadOptions()])
      return createConsoleServer(options, { port: listeningPort, token })
    })()
    // Loading fails if the kubeconfig cannot be read; the next request retries it.
    loading.catch(() => {
      loading = undefined
    })
    return loading
  }
  const server = createServer((incoming, response) => {
    load().then(
      (consoleServer) => consoleServer.handle(incoming, response),
      (error: unknown) => failRequest(incoming, response, error),
    )
  })
  server.on('upgrade', (incoming, socket, head) => {
    load().then(
      (consoleServer) => consoleServer.upgrade(incoming, socket, head),
      () => socket.destroy(),
    )
  })
  server.maxConnections = CONNECTIONS_MAX

  const listen = (candidate: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(candidate, HOST, () => {
        server.off('error', reject)
        resolve()
      })
    })
  try {
    await listen(port ?? DEFAULT_PORT)
  } catch (error) {
    if (port !== undefined) throw cannotListen(error, port, portFlag)
    await listen(0)
  }
  listeningPort = (server.address() as { port: number }).port
  return {
    port: listeningPort,
    url: `http://${HOST}:${listeningPort}/#token=${token}`,
    load: () => void load(),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      // Not awaited, because loading does not end if the API server never becomes ready.
      loading?.then(
        (consoleServer) => consoleServer.close(),
        () => {},
      )
      await closed
    },
  }
}

function failRequest(incoming: IncomingMessage, response: ServerResponse, error: unknown): void {
  incoming.resume()
  const message = error instanceof Error ? error.message : String(error)
  response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
  response.end(`The console cannot start: ${message}\n`)
}

function cannotListen(error: unknown, port: number, flag: string): Error {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return new UsageError(
      `${flag} ${port}: port ${port} of ${HOST} is in use by another program. Stop it, choose another port, or set ${flag} 0 for a free one.`,
    )
  if (code === 'EACCES')
    return new UsageError(`${flag} ${port}: you may not listen on port ${port}. Choose a port above 1023.`)
  return new UsageError(`${flag} ${port}: cannot listen on ${HOST}:${port}: ${message}`)
}
