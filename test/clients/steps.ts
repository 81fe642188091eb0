// Runs a client program that prints one line per step: "ok NAME" or "failed NAME: REASON".
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface StepsRun {
  /** Names of the steps in the order in which they ran. */
  readonly names: readonly string[]
  /** Output line by step. */
  readonly outputByName: ReadonlyMap<string, string>
  readonly exitCode: number
  readonly errors: string
}

/** Runs the program and parses its output. */
export async function runSteps(
  program: string,
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<StepsRun> {
  const { stdout, stderr, code } = await promisify(execFile)(program, flags, { env: { ...process.env, ...env } }).then(
    (result) => ({ ...result, code: 0 }),
    (failure: { stdout: string; stderr: string; code: number }) => failure,
  )
  const lines = [...stdout.matchAll(/^(?:ok|failed) ([^:\n]+).*$/gm)]
  return {
    names: lines.map(([, name]) => name!),
    outputByName: new Map(lines.map(([line, name]) => [name!, line])),
    exitCode: code,
    errors: stderr,
  }
}
