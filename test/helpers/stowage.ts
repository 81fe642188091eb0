// A `stowage` command other than a server, in its own process: a scheduler, a provisioner, controllers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { buildProgram } from './build.ts'

export interface RunningStowage {
  readonly pid: number
  /** Its standard error so far. */
  log(): string
  /** SIGTERM; resolves once the process has exited. */
  stop(): Promise<void>
}

/** Resolves once it logs that it has started. */
export async function startStowage({
  args,
  env = {},
}: {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}): Promise<RunningStowage> {
  const child = spawn(process.execPath, [await buildProgram(), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  })
  const gone = once(child, 'exit')
  let log = ''
  await new Promise<void>((resolve, reject) => {
    void gone.then(() => reject(new Error(`stowage ${args[0]} ended before it had started:\n${log}`)))
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
      await gone
    },
  }
}
