// Runs the actions of probes and lifecycle hooks: a command in the container, an HTTP request, a TCP connection or a pause.
// Requests and connections go to this machine by default, because the containers share its network. probes.ts repeats probes;
// host-containers.ts runs postStart hooks, and stop-run.ts preStop hooks.
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import type { Stored } from '../../api/kind.ts'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { ContainerProcess, ExecOptions } from './exec-in-container.ts'

type Probe = NonNullable<Container['livenessProbe']>
type Hook = NonNullable<NonNullable<Container['lifecycle']>['preStop']>
export type Action = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'> & Pick<Hook, 'sleep'>

export interface ActionResult {
  readonly isSuccess: boolean
  /** The output of the action, or why it failed. */
  readonly output: string
}

export interface ActionDeps {
  readonly clock: Clock
  exec(pod: Readonly<Stored<Pod>>, containerName: string, options: ExecOptions): Promise<ContainerProcess>
}

export interface ActionTarget {
  readonly pod: Readonly<Stored<Pod>>
  readonly container: Readonly<Container>
}

/** Further output is dropped. */
const OUTPUT_BYTES_MAX = 10_240
const LOCALHOST = '127.0.0.1'
const SUCCESS_CODES = { min: 200, max: 399 }

/** Rejects if the action cannot be run, e.g. because the container has exited. */
export async function runAction(
  target: ActionTarget,
  action: Action,
  timeoutMs: number,
  deps: ActionDeps,
): Promise<ActionResult> {
  const { exec, httpGet, tcpSocket, sleep } = action
  if (exec) return runCommand(target, exec.command ?? [], timeoutMs, deps)
  if (httpGet) return sendRequest(target, httpGet, timeoutMs)
  if (tcpSocket) return openConnection(target, tcpSocket, timeoutMs)
  if (sleep) {
    await deps.clock.sleep(Math.min(sleep.seconds * 1_000, timeoutMs))
    return { isSuccess: true, output: '' }
  }
  throw new Error(`${Object.keys(action).join()} is not supported by this node agent`)
}

/** Returns the fields of probes and hooks that this agent cannot run. */
export function findUnsupportedActions({ name, ...container }: Readonly<Container>): string[] {
  const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const
  const hooks = ['postStart', 'preStop'] as const
  return [
    ...probes.flatMap((field) => (container[field]?.grpc ? [`${field}.grpc of container ${name}`] : [])),
    ...hooks.flatMap((field) =>
      container.lifecycle?.[field]?.tcpSocket ? [`lifecycle.${field}.tcpSocket of container ${name}`] : [],
    ),
  ]
}

async function runCommand(
  { pod, container }: ActionTarget,
  command: readonly string[],
  timeoutMs: number,
  { exec, clock }: ActionDeps,
): Promise<ActionResult> {
  const process = await exec(pod, container.name, { command })
  const output = [collect(process.stdout), ...(process.stderr ? [collect(process.stderr)] : [])]
  let isTimedOut = false
  const cancelTimeout = clock.after(timeoutMs, () => {
    isTimedOut = true
    process.kill('SIGKILL')
  })
  const code = await process.exitCode
  cancelTimeout()
  if (isTimedOut) {
    return { isSuccess: false, output: `command timed out: ${JSON.stringify(command)} timed out after ${timeoutMs}ms` }
  }
  // A background process of the command may keep the output open.
  await Promise.race([Promise.all(output.map(({ ended }) => ended)), clock.sleep(OUTPUT_WAIT_MS)])
  return { isSuccess: code === 0, output: output.map(({ text }) => text()).join('') }
}

const OUTPUT_WAIT_MS = 100

function collect(stream: ContainerProcess['stdout']): { ended: Promise<void>; text(): string } {
  let bytes = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    if (bytes.length < OUTPUT_BYTES_MAX) bytes = Buffer.concat([bytes, chunk]).subarray(0, OUTPUT_BYTES_MAX)
  })
  const ended = new Promise<void>((resolve) => {
    stream.once('close', resolve)
    stream.once('error', () => resolve())
  })
  return { ended, text: () => bytes.toString('utf8') }
}

function sendRequest(
  target: ActionTarget,
  { host = '', port, path = '/', scheme = 'HTTP', httpHeaders = [] }: NonNullable<Action['httpGet']>,
  timeoutMs: number,
): Promise<ActionResult> {
  const send = scheme === 'HTTPS' ? httpsRequest : httpRequest
  const headers: Record<string, string[]> = { 'User-Agent': ['kube-probe/stowage'] }
  for (const { name, value } of httpHeaders) headers[name] = [...(headers[name] ?? []), value]
  const options = {
    host: host || LOCALHOST,
    port: findPort(target, port),
    path: path.startsWith('/') ? path : `/${path}`,
    headers,
    rejectUnauthorized: false, // like the kubelet
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
  }
  return new Promise((resolve) => {
    const request = send(options, (response) => {
      response.resume()
      const code = response.statusCode ?? 0
      const isSuccess = code >= SUCCESS_CODES.min && code <= SUCCESS_CODES.max
      resolve({ isSuccess, output: isSuccess ? '' : `HTTP probe failed with statuscode: ${code}` })
    })
    request.once('error', ({ message }) => resolve({ isSuccess: false, output: message }))
    request.end()
  })
}

function openConnection(
  target: ActionTarget,
  { host = '', port }: NonNullable<Action['tcpSocket']>,
  timeoutMs: number,
): Promise<ActionResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: host || LOCALHOST, port: findPort(target, port) })
    const end = (result: ActionResult) => {
      socket.destroy()
      resolve(result)
    }
    socket.setTimeout(timeoutMs, () => end({ isSuccess: false, output: `timed out after ${timeoutMs}ms` }))
    socket.once('connect', () => end({ isSuccess: true, output: '' }))
    socket.once('error', ({ message }) => end({ isSuccess: false, output: message }))
  })
}

function findPort({ container }: ActionTarget, port: number | string): number {
  const number = Number(port)
  if (Number.isInteger(number)) return number
  const named = container.ports?.find(({ name }) => name === port)
  if (!named) throw new Error(`container ${container.name} has no port ${JSON.stringify(port)}`)
  return named.containerPort
}
