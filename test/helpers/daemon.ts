// Runs a long-running command of the built program, or another program, in its own process, which can be killed and restarted
// with the same arguments. Unexpected exits are recorded with their last output.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { buildProgram } from './build-program.ts'

export interface Daemon {
  readonly name: string
  /** Resolves when the process is ready or has exited. */
  start(): Promise<void>
  kill(): Promise<void>
  /** Sends a signal to the process, if it runs. */
  signal(name: NodeJS.Signals): void
  stop(): Promise<void>
  /** Returns the end of its standard error, over all starts. */
  log(): string
  /** Messages about exits without kill or stop. */
  readonly unexpectedExits: readonly string[]
}

export interface DaemonOptions {
  readonly name: string
  readonly args: readonly string[]
  /** Path of a JavaScript program. Default: the built program. */
  readonly program?: string
  readonly env?: Readonly<Record<string, string>>
  /** Whether the output since the last start means that the process is ready. Default: it contains a line on stdout. */
  readonly isReady?: (output: { readonly stdout: string; readonly stderr: string }) => boolean
}

const LOG_MAX = 400_000

export async function createDaemon(options: DaemonOptions): Promise<Daemon> {
  const { name, args, env = {}, isReady = ({ stdout }) => stdout.includes('\n') } = options
  const program = options.program ?? (await buildProgram())
  const unexpectedExits: string[] = []
  let log = ''
  let child: ChildProcess | undefined
  let isExpectedToEnd = false

  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    isExpectedToEnd = true
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }

  return {
    name,
    unexpectedExits,
    log: () => log,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    signal: (signal) => void child?.kill(signal),
    start() {
      const output = { stdout: '', stderr: '' }
      isExpectedToEnd = false
      const startedChild = spawn(process.execPath, [program, ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...env },
      })
      child = startedChild
      return new Promise((resolve) => {
        for (const stream of ['stdout', 'stderr'] as const) {
          startedChild[stream].setEncoding('utf8').on('data', (text: string) => {
            output[stream] = (output[stream] + text).slice(-LOG_MAX)
            if (stream === 'stderr') log = (log + text).slice(-LOG_MAX)
            if (isReady(output)) resolve()
          })
        }
        startedChild.once('exit', (code, signal) => {
          if (!isExpectedToEnd)
            unexpectedExits.push(`${name} ended with ${signal ?? code}: ${output.stderr.slice(-1_000)}`)
          resolve()
        })
      })
    },
  }
}
