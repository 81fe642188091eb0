// Starts a program under benchmark as a child process, with its output in a file.
import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { cpuMs, residentMb } from './server-process.ts'

export interface ChildProgram {
  readonly pid: number
  /** CPU time used so far. */
  cpuMs(): number
  residentMb(): number
  /** Freezes the process, or continues it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  stop(): Promise<void>
}

interface ChildProgramOptions {
  /** A path, or a name on PATH. */
  readonly command: string
  readonly args: readonly string[]
  /** The file for its output. */
  readonly logPath: string
  /** In addition to this process's environment. */
  readonly env?: Readonly<Record<string, string>>
}

const KILL_DELAY_MS = 10_000

export async function startChildProgram({ command, args, logPath, env }: ChildProgramOptions): Promise<ChildProgram> {
  const output = openSync(logPath, 'a')
  const child = spawn(command, args, { stdio: ['ignore', output, output], env: { ...process.env, ...env } })
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  const pid = child.pid!
  return {
    pid,
    cpuMs: () => cpuMs(pid),
    residentMb: () => residentMb(pid),
    signal: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM')
      const killTimer = setTimeout(() => child.kill('SIGKILL'), KILL_DELAY_MS)
      await exit
      clearTimeout(killTimer)
    },
  }
}
