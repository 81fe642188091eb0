// Roles are parts of a measurement that run in a separate process: the program forks itself with the name of a role, and
// exchanges messages with the child, one job and one result at a time.
import { fork } from 'node:child_process'

/** Runs a job of a role. Each role has a file in this folder; main.ts lists them. */
// biome-ignore lint/suspicious/noExplicitAny: each role has its own type of job, which the message channel does not know
export type RunJob = (job: any) => Promise<unknown>

export interface Role<Job, Result> {
  run(job: Job): Promise<Result>
  stop(): void
}

export const ROLE_ARGUMENT = '--role'

export interface RoleOptions {
  /** Flags of Node.js. */
  readonly nodeFlags?: readonly string[]
  /** In addition to this process's environment. */
  readonly env?: Readonly<Record<string, string>>
}

export function startRole<Job, Result>(
  name: string,
  { nodeFlags = [], env = {} }: RoleOptions = {},
): Role<Job, Result> {
  const child = fork(process.argv[1]!, [ROLE_ARGUMENT, name], {
    serialization: 'advanced',
    execArgv: [...nodeFlags],
    env: { ...process.env, ...env },
  })
  return {
    run: (job) =>
      new Promise<Result>((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`the ${name} process exited with code ${code}`))
        child.once('exit', onExit)
        child.once('message', (message) => {
          child.off('exit', onExit)
          const { result, error } = message as { result: Result; error?: string }
          if (error === undefined) resolve(result)
          else reject(new Error(`${name}: ${error}`))
        })
        child.send(job as object)
      }),
    stop: () => child.disconnect(),
  }
}

/** In the forked process: runs jobs until the parent disconnects. */
export function serveRole(run: RunJob): void {
  process.on('message', async (job) => {
    try {
      process.send?.({ result: await run(job) })
    } catch (error) {
      process.send?.({ result: undefined, error: error instanceof Error ? error.message : String(error) })
    }
  })
  process.on('disconnect', () => process.exit(0))
}
