// Runs one program and waits for it: arguments as a list and no shell, its complaint in the error. A caller's deadline
// never reaches it: a half-done resize is worse than a late one. Only its own, generous limit does.
import { spawn } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import { MissingToolError, ProgramFailedError } from './errors.ts'

export interface RunOptions {
  /** Written to its standard input, which is empty otherwise. */
  readonly input?: string
  readonly timeoutMs?: number
  /** Exit codes that are an answer rather than a failure. */
  readonly okCodes?: readonly number[]
}

export interface RunResult {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

export type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<RunResult>

/** The slowest step, growing a large ext4 on a busy disk, stays well below this. */
const PROGRAM_TIMEOUT_MS = 10 * 60_000

/** Programs here print a few lines; what comes after this is dropped. */
const OUTPUT_LENGTH_MAX = 8 * 1024 * 1024

/** Where administration programs live, which the PATH of an ordinary user leaves out. */
const ADMIN_PATHS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin']

export const searchPath = () => [process.env.PATH, ...ADMIN_PATHS].filter(Boolean).join(':')

export function createRun({ clock }: { readonly clock: Clock }): Run {
  return (program, args, { input, timeoutMs = PROGRAM_TIMEOUT_MS, okCodes = [0] } = {}) =>
    new Promise((resolve, reject) => {
      // A message is matched in places, so it must not be translated; and a removed working directory must not look
      // like a missing program.
      const child = spawn(program, args, { cwd: '/', env: { PATH: searchPath(), LC_ALL: 'C' }, stdio: 'pipe' })
      const output = { stdout: '', stderr: '' }
      for (const stream of ['stdout', 'stderr'] as const) {
        child[stream].setEncoding('utf8')
        child[stream].on('data', (text: string) => {
          if (output[stream].length < OUTPUT_LENGTH_MAX) output[stream] += text
        })
      }
      child.stdin.on('error', () => {}) // it may end without reading its input: its exit code tells what happened
      child.stdin.end(input ?? '')

      const fail = (how: string, code?: number) =>
        reject(new ProgramFailedError([program, ...args], { how, code, stderr: output.stderr }))

      // Answers at once: a program that waits for the kernel is not ended by any signal.
      const cancelTimeout = clock.after(timeoutMs, () => {
        child.kill('SIGKILL')
        fail(`did not end within ${timeoutMs} ms and was killed`)
      })
      child.once('error', (error: NodeJS.ErrnoException) => {
        cancelTimeout()
        if (error.code === 'ENOENT') reject(new MissingToolError(program))
        else fail(`could not be started (${error.code})`)
      })
      child.once('close', (code, signal) => {
        cancelTimeout()
        if (code === null) fail(`was ended by ${signal}`)
        else if (okCodes.includes(code)) resolve({ ...output, code })
        else fail(`ended with ${code}`, code)
      })
    })
}
