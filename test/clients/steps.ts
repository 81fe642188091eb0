// Runs a client program that prints one line per step: "ok NAME" or "failed NAME: REASON".
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface StepsRun {
  /** Names in the order they ran. */
  readonly names: readonly string[]
  /** The output of a step. */
  readonly byName: ReadonlyMap<string, string>
  readonly exitCode: number
  readonly errors: string
}

export async function runSteps(
  program: string,
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<StepsRun> {
  const { stdout, stderr, code } = await promisify(execFile)(program, flags, { env: { ...process.env, ...env } }).then(
    (done) => ({ ...done, code: 0 }),
    (failure: { stdout: string; stderr: string; code: number }) => failure,
  )
  const lines = [...stdout.matchAll(/^(?:ok|failed) ([^:\n]+).*$/gm)]
  return {
    names: lines.map(([, name]) => name!),
    byName: new Map(lines.map(([line, name]) => [name!, line])),
    exitCode: code,
    errors: stderr,
  }
}
