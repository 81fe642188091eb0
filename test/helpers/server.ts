// Runs the server of the built program in its own process. Requests use HTTPS with the administrator's token.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildProgram } from './build-program.ts'

export interface ServerOptions {
  readonly dataDir: string
  /** Directory of the credentials, if it is not in dataDir. Pass it in `flags` too. */
  readonly pkiDir?: string
  /** Default `up`. */
  readonly command?: 'up' | 'server'
  /** Path of the program, for example of an earlier release. Default: the one built from the current sources. */
  readonly program?: string
  /** The command that runs the program, such as an installed one. Default: Node.js with `program`. */
  readonly executable?: readonly [string, ...string[]]
  readonly flags?: readonly string[]
  /** Number of nodes of `up`. 'default' omits the flag, so the program chooses. If absent, 0, which starts faster. */
  readonly nodes?: 'default' | number
  /** Whether `startServer` resolves when the API is ready, without waiting for the nodes. */
  readonly skipsNodeReadiness?: boolean
  /** Whether `up` of this build warms up. Default false, because it takes processor time from the tests that run at the same time. */
  readonly warmsUp?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Runs the server as this user, who owns dataDir. */
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
  /** Returns the end of its standard error. */
  log(): string
  /** Resolves with the exit code when the process has exited. */
  whenExited(): Promise<number | null>
  /** Sends SIGTERM. Resolves with the exit code. */
  stop(): Promise<number | null>
  /** Sends SIGKILL. Resolves when the process has exited. */
  kill(): Promise<void>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ReceivedResponse>
  /** Returns the response before its body has ended, for watches. */
  open(method: string, path: string, headers?: Record<string, string>): Promise<IncomingMessage>
}

export interface ReceivedResponse {
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
  program: givenProgram,
  executable,
  flags = [],
  nodes: requestedNodes = 0,
  skipsNodeReadiness = false,
  warmsUp = false,
  env = {},
  uid,
}: ServerOptions): Promise<RunningServer> {
  const [file, ...args] = executable ?? [process.execPath, givenProgram ?? (await buildProgram())]
  const child = spawn(
    file,
    [
      ...[...args, command, '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--output', 'json'],
      ...(command === 'up' && requestedNodes !== 'default' ? ['--nodes', String(requestedNodes)] : []),
      ...(command === 'up' && !warmsUp && !executable && !givenProgram ? ['--warm-up', 'off'] : []), // earlier releases lack the flag
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
  const exit = once(child, 'exit')
  const readyLines = await readReadyLines(requestedNodes === 0 || skipsNodeReadiness ? 1 : 2, child, exit, () => log)
  const { url, kubeconfig } = readyLines[0] as Pick<RunningServer, 'url' | 'kubeconfig'>
  const nodes = (readyLines[1] as Pick<RunningServer, 'nodes'> | undefined)?.nodes
  const ca = await readFile(join(pkiDir, 'ca.crt'), 'utf8')
  const tokens = JSON.parse(await readFile(join(pkiDir, 'tokens.json'), 'utf8')).tokens as {
    token: string
    user: string
  }[]
  const token = tokens.find(({ user }) => user === 'stowage-admin')!.token
  const agent = new Agent({ ca, keepAlive: true, maxSockets: 512 })
  const requestOptions = (path: string): RequestOptions => {
    const { hostname, port } = new URL(url)
    return { host: hostname, port, path, agent, headers: { authorization: `Bearer ${token}` } }
  }
  const finish = async () => {
    const [code] = await exit
    agent.destroy()
    // Each controller of the server has its own role, which must grant all of the controller's requests.
    const deniedLines = log.split('\n').filter((line) => line.includes('missing permission: '))
    if (deniedLines.length > 0)
      throw new Error(`the server denied requests of its own controllers:\n${deniedLines.join('\n')}`)
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
    whenExited: finish,
    async stop() {
      child.kill('SIGTERM')
      return finish()
    },
    async kill() {
      child.kill('SIGKILL')
      await finish()
    },
    open: (method, path, headers = {}) => send(requestOptions(path), method, undefined, headers),
    async call(method, path, body, headers = {}) {
      const response = await send(requestOptions(path), method, body, headers)
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

/** Reads the lines of JSON that the program prints: the first when the API is ready, the second when the nodes are. */
async function readReadyLines(
  count: number,
  child: ChildProcess,
  exit: Promise<unknown>,
  log: () => string,
): Promise<unknown[]> {
  const lines = createInterface({ input: child.stdout! })
  const messages: unknown[] = []
  const allMessages = new Promise<unknown[]>((resolve) =>
    lines.on('line', (text) => {
      if (messages.push(JSON.parse(text)) === count) resolve(messages)
    }),
  )
  const earlyExit = exit.then(async () => {
    if (!child.stderr!.closed) await once(child.stderr!, 'close') // its last output may arrive after the exit
    const { exitCode, signalCode } = child
    throw new Error(`the server exited before it was ready (code ${exitCode}, signal ${signalCode}):\n${log()}`)
  })
  return Promise.race([allMessages, earlyExit])
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
    // Without Content-Length, which Node.js omits for DELETE, the server would read the body as the next request.
    const contentHeaders =
      payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }
    const outgoingRequest = request(
      { ...options, method, headers: { ...options.headers, ...contentHeaders, ...headers } },
      resolve,
    )
    outgoingRequest.on('error', reject)
    outgoingRequest.end(payload)
  })
}
