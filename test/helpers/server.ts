// A real server in its own process, from the built program: started, stopped, killed and started again on the same
// directory. Requests use real HTTPS with the administrator's token.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildProgram } from './build.ts'

export interface ServerOptions {
  readonly dataDir: string
  /** Where the server keeps its credentials, if not in dataDir; pass it in `flags` too. */
  readonly pkiDir?: string
  /** Default `up`. */
  readonly command?: 'up' | 'server'
  readonly flags?: readonly string[]
  /** Nodes of `up`: its default, or this many. Default: none, which is faster. */
  readonly nodes?: 'default' | number
  /** Settles once the API is ready; otherwise when the nodes are too. */
  readonly isHasty?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Runs it as this user, who owns dataDir. */
  readonly uid?: number
}

export interface RunningServer {
  readonly url: string
  readonly kubeconfig: string
  readonly dataDir: string
  /** The nodes of `up`, once they are ready. */
  readonly nodes?: { readonly names: readonly string[]; readonly backend: string; readonly poolBytes: number }
  readonly ca: string
  readonly token: string
  readonly pid: number
  /** Its standard error so far. */
  log(): string
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL; resolves once the process has exited. */
  kill(): Promise<void>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** The open response, for watches. */
  open(method: string, path: string, headers?: Record<string, string>): Promise<IncomingMessage>
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  /** The body as JSON. */
  readonly json: any
}

export async function startServer({
  dataDir,
  pkiDir = join(dataDir, 'pki'),
  command = 'up',
  flags = [],
  nodes: wanted = 0,
  isHasty = false,
  env = {},
  uid,
}: ServerOptions): Promise<RunningServer> {
  const program = await buildProgram()
  const child = spawn(
    process.execPath,
    [
      ...[program, command, '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--output', 'json'],
      ...(command === 'up' && wanted !== 'default' ? ['--nodes', String(wanted)] : []),
      ...flags,
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      ...(uid === undefined ? {} : { uid, gid: uid, cwd: dataDir }),
    },
  )
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-200_000)
  })
  const gone = once(child, 'exit')
  const said = await firstLines(wanted === 0 || isHasty ? 1 : 2, child, gone, () => log)
  const { url, kubeconfig } = said[0] as Pick<RunningServer, 'url' | 'kubeconfig'>
  const nodes = (said[1] as Pick<RunningServer, 'nodes'> | undefined)?.nodes
  const ca = await readFile(join(pkiDir, 'ca.crt'), 'utf8')
  const tokens = JSON.parse(await readFile(join(pkiDir, 'tokens.json'), 'utf8')).tokens as {
    token: string
    user: string
  }[]
  const token = tokens.find(({ user }) => user === 'stowage-admin')!.token
  const agent = new Agent({ ca, keepAlive: true, maxSockets: 512 })
  const base = (path: string): RequestOptions => {
    const { hostname, port } = new URL(url)
    return { host: hostname, port, path, agent, headers: { authorization: `Bearer ${token}` } }
  }
  const finish = async () => {
    const [code] = await gone
    agent.destroy()
    return code as number | null
  }
  return {
    url,
    kubeconfig,
    dataDir,
    ...(nodes ? { nodes } : {}),
    ca,
    token,
    pid: child.pid!,
    log: () => log,
    async stop() {
      child.kill('SIGTERM')
      return finish()
    },
    async kill() {
      child.kill('SIGKILL')
      await finish()
    },
    open: (method, path, headers = {}) => send(base(path), method, undefined, headers),
    async call(method, path, body, headers = {}) {
      const response = await send(base(path), method, body, headers)
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString('utf8')
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        text,
        get json() {
          return JSON.parse(text)
        },
      }
    },
  }
}

/** The API prints one line of JSON when it is ready, the nodes another. */
async function firstLines(
  count: number,
  child: ChildProcess,
  gone: Promise<unknown>,
  log: () => string,
): Promise<unknown[]> {
  const lines = createInterface({ input: child.stdout! })
  const said: unknown[] = []
  const all = new Promise<unknown[]>((resolve) =>
    lines.on('line', (text) => {
      if (said.push(JSON.parse(text)) === count) resolve(said)
    }),
  )
  const early = gone.then(() => {
    throw new Error(`the server ended before it was ready:\n${log()}`)
  })
  return Promise.race([all, early])
}

function send(
  options: RequestOptions,
  method: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    const payload = body === undefined ? undefined : isRaw ? body : JSON.stringify(body)
    // Node.js sends no Content-Length with DELETE, and the server would read the body as the next request.
    const about =
      payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }
    const outgoing = request({ ...options, method, headers: { ...options.headers, ...about, ...headers } }, resolve)
    outgoing.on('error', reject)
    outgoing.end(payload)
  })
}
