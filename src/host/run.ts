// Runs a program without a shell and waits for it. Errors contain its stderr. Programs have their own, generous timeout
// instead of the CSI call's deadline, because an interrupted resize is worse than a late one.
import { spawn } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import { MissingToolError, ProgramFailedError } from './errors.ts'

interface RunOptions {
  /** The input on stdin. Default: none. */
  readonly input?: string
  /** The program is killed after this time. Default: 10 minutes. */
  readonly timeoutMs?: number
  /** Exit codes that are not errors. Default: 0. */
  readonly okCodes?: readonly number[]
}

interface RunResult {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

export type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<RunResult>

const PROGRAM_TIMEOUT_MS = 10 * 60_000

/** Output beyond about this length is dropped. */
const OUTPUT_LENGTH_MAX = 8 * 1024 * 1024

/** Directories that the PATH of an ordinary user may omit. */
const ADMIN_PATHS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin']

export const searchPath = () => [process.env.PATH, ...ADMIN_PATHS].filter(Boolean).join(':')

export function createRun({ clock }: { readonly clock: Clock }): Run {
  return (program, args, { input, timeoutMs = PROGRAM_TIMEOUT_MS, okCodes = [0] } = {}) =>
    new Promise((resolve, reject) => {
      // LC_ALL=C prevents the translation of error messages, which callers match. cwd is set, because with a deleted working
      // directory spawn fails with ENOENT, as it does for a missing program.
      const child = spawn(program, args, { cwd: '/', env: { PATH: searchPath(), LC_ALL: 'C' }, stdio: 'pipe' })
      const output = { stdout: '', stderr: '' }
      for (const stream of ['stdout', 'stderr'] as const) {
        child[stream].setEncoding('utf8')
        child[stream].on('data', (text: string) => {
          if (output[stream].length < OUTPUT_LENGTH_MAX) output[stream] += text
        })
      }
      child.stdin.on('error', () => {}) // the program may exit without reading stdin; its exit code decides
      child.stdin.end(input ?? '')

      const fail = (reason: string, code?: number) =>
        reject(new ProgramFailedError([program, ...args], { reason, code, stderr: output.stderr }))

      // Reject immediately, because a program in uninterruptible sleep does not react to SIGKILL.
      const cancelTimeout = clock.after(timeoutMs, () => {
        child.kill('SIGKILL')
        fail(`did not exit within ${timeoutMs} ms and was killed`)
      })
      child.once('error', (error: NodeJS.ErrnoException) => {
        cancelTimeout()
        if (error.code === 'ENOENT') reject(new MissingToolError(program))
        else fail(`could not be started (${error.code})`)
      })
      child.once('close', (code, signal) => {
        cancelTimeout()
        if (code === null) fail(`was killed by ${signal}`)
        else if (okCodes.includes(code)) resolve({ ...output, code })
        else fail(`exited with ${code}`, code)
      })
    })
}
