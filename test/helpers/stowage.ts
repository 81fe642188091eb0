// Runs a `stowage` command other than a server in its own process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { buildProgram } from './build-program.ts'

export interface RunningStowage {
  readonly pid: number
  /** Returns the end of its standard error. */
  log(): string
  /** Sends SIGTERM. Resolves when the process has exited. */
  stop(): Promise<void>
}

/** Starts the command. Resolves when it logs that it has started. */
export async function startStowage({
  args,
  env = {},
  program,
}: {
  readonly args: readonly string[]
  /** Path of the program, for example of an earlier release. Default: the one built from the current sources. */
  readonly program?: string
  readonly env?: Readonly<Record<string, string>>
}): Promise<RunningStowage> {
  const child = spawn(process.execPath, [program ?? (await buildProgram()), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  })
  const exit = once(child, 'exit')
  let log = ''
  await new Promise<void>((resolve, reject) => {
    const describeExit = () =>
      `stowage ${args[0]} exited with ${child.exitCode ?? child.signalCode} before it had started`
    void exit.then(() => reject(new Error(`${describeExit()}:\n${log}`)))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-200_000)
      if (log.includes('"started"')) resolve()
    })
  })
  return {
    pid: child.pid!,
    log: () => log,
    async stop() {
      child.kill('SIGTERM')
      await exit
    },
  }
}
