// A long-running command of the built program in its own process: killed and started again with the same arguments. An
// unexpected exit is recorded with its last output.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { buildProgram } from './build.ts'

export interface Daemon {
  readonly name: string
  /** Settles once it is ready, or has exited before that. */
  start(): Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
  /** Its standard error so far, over all starts. */
  log(): string
  /** Unexpected exits. */
  readonly unexpectedExits: readonly string[]
}

export interface DaemonOptions {
  readonly name: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Decides by the output of one start. Default: a line on standard output. */
  readonly isReady?: (said: { readonly stdout: string; readonly stderr: string }) => boolean
}

const LOG_MAX = 400_000

export async function createDaemon(options: DaemonOptions): Promise<Daemon> {
  const { name, args, env = {}, isReady = ({ stdout }) => stdout.includes('\n') } = options
  const program = await buildProgram()
  const unexpectedExits: string[] = []
  let log = ''
  let child: ChildProcess | undefined
  let isExpectedToEnd = false

  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    isExpectedToEnd = true
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  return {
    name,
    unexpectedExits,
    log: () => log,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    start() {
      const said = { stdout: '', stderr: '' }
      isExpectedToEnd = false
      const started = spawn(process.execPath, [program, ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...env },
      })
      child = started
      return new Promise((resolve) => {
        for (const stream of ['stdout', 'stderr'] as const) {
          started[stream].setEncoding('utf8').on('data', (text: string) => {
            said[stream] = (said[stream] + text).slice(-LOG_MAX)
            if (stream === 'stderr') log = (log + text).slice(-LOG_MAX)
            if (isReady(said)) resolve()
          })
        }
        started.once('exit', (code, signal) => {
          if (!isExpectedToEnd)
            unexpectedExits.push(`${name} ended with ${signal ?? code}: ${said.stderr.slice(-1_000)}`)
          resolve()
        })
      })
    },
  }
}
