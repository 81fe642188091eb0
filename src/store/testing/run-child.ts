// Runs one of the child programs in this folder as a separate process, which the test can trace, limit or kill.
// The program is bundled into a temporary directory first, because Node.js does not run TypeScript.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'

export interface ChildProgram {
  /** `node` and the path of the bundle. */
  readonly command: readonly [string, string]
  remove(): Promise<void>
}

export async function bundleChild(name: string): Promise<ChildProgram> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-child-'))
  const outfile = join(dir, 'child.mjs')
  await build({
    entryPoints: [join(import.meta.dirname, name)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  })
  await symlink(join(import.meta.dirname, '../../../node_modules'), join(dir, 'node_modules'))
  return { command: [process.execPath, outfile], remove: () => rm(dir, { recursive: true, force: true }) }
}

export interface Child {
  readonly process: ChildProcess
  /** All lines printed so far. */
  readonly lines: string[]
  readonly errors: () => string
  /** Resolves with the next line, or with undefined at the end of the output. */
  nextLine(): Promise<string | undefined>
  exited(): Promise<{ code: number | null; signal: string | null }>
}

export function runChild([program = '', ...args]: readonly string[]): Child {
  const process = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(process, 'close')
  const lines: string[] = []
  let errors = ''
  process.stderr.on('data', (data) => {
    errors += data
  })
  const reader = createInterface({ input: process.stdout })
  const waiting: ((line: string | undefined) => void)[] = []
  let taken = 0
  let isDone = false
  const serve = () => {
    while (waiting.length > 0 && (taken < lines.length || isDone)) waiting.shift()?.(lines[taken++])
  }
  reader.on('line', (line) => {
    lines.push(line)
    serve()
  })
  reader.on('close', () => {
    isDone = true
    serve()
  })
  return {
    process,
    lines,
    errors: () => errors,
    nextLine: () =>
      new Promise((resolve) => {
        waiting.push(resolve)
        serve()
      }),
    exited: async () => {
      const [code, signal] = await exit
      return { code, signal }
    },
  }
}
