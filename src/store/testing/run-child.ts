// Runs one of the child programs in this folder as a separate process, which the test can trace, limit or kill.
// The program is bundled into a temporary directory first, because the oldest supported Node.js does not run TypeScript.
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
  whenExited(): Promise<{ code: number | null; signal: string | null }>
}

export function runChild([program = '', ...args]: readonly string[]): Child {
  const instance = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(instance, 'close')
  const lines: string[] = []
  let errors = ''
  instance.stderr.on('data', (data) => {
    errors += data
  })
  const reader = createInterface({ input: instance.stdout })
  const readers: ((line: string | undefined) => void)[] = []
  let nextIndex = 0
  let isClosed = false
  const serveReaders = () => {
    while (readers.length > 0 && (nextIndex < lines.length || isClosed)) readers.shift()?.(lines[nextIndex++])
  }
  reader.on('line', (line) => {
    lines.push(line)
    serveReaders()
  })
  reader.on('close', () => {
    isClosed = true
    serveReaders()
  })
  return {
    process: instance,
    lines,
    errors: () => errors,
    nextLine: () =>
      new Promise((resolve) => {
        readers.push(resolve)
        serveReaders()
      }),
    whenExited: async () => {
      const [code, signal] = await exit
      return { code, signal }
    },
  }
}
