// Runs a command of the program until it exits.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { buildProgram } from './build-program.ts'

export interface CommandResult {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

export async function runStowage(...args: string[]): Promise<CommandResult> {
  const program = await buildProgram()
  return promisify(execFile)(process.execPath, [program, ...args]).then(
    (result) => ({ ...result, code: 0 }),
    (error) => error,
  )
}
