// Runs one kubectl with its own home and cache, one kubeconfig and one namespace. A run with an unexpected exit code fails with
// the whole command and its output.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { KubectlProgram } from '../helpers/kubectls.ts'

export interface KubectlOptions {
  readonly program: KubectlProgram
  readonly kubeconfig: string
  readonly namespace: string
  /** Directory of its cache. The user's files are neither read nor written. */
  readonly home: string
}

interface RunOptions {
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  /** Expected exit code. Default 0. */
  readonly exit?: number
}

interface KubectlOutput {
  readonly out: string
  readonly err: string
}

interface RunningCommand {
  /** Returns the next line that matches and skips earlier ones. */
  line(pattern: RegExp): Promise<string>
  stop(): Promise<void>
}

export interface Kubectl {
  readonly minor: number
  /** Runs a command. A string is split at spaces; pass a list if an argument contains one. */
  run(command: string | readonly string[], options?: RunOptions): Promise<KubectlOutput>
  /** Runs a command that must exit with 0, and returns its standard output. */
  out(command: string | readonly string[], options?: RunOptions): Promise<string>
  /** Runs a command that must exit with 1, and returns its standard error. */
  expectError(command: string | readonly string[], options?: RunOptions): Promise<string>
  /** Runs a command with `-o json` and returns the parsed output. */
  json(command: string): Promise<any>
  /** Starts a long-running command. */
  follow(command: string): RunningCommand
}

export function createKubectl({ program, kubeconfig, namespace, home }: KubectlOptions): Kubectl {
  const start = (command: string | readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess => {
    const args = typeof command === 'string' ? command.split(' ') : [...command]
    return spawn(program.path, ['--kubeconfig', kubeconfig, '--namespace', namespace, ...args], {
      env: { PATH: process.env.PATH, HOME: home, KUBECACHEDIR: `${home}/cache`, TMPDIR: home, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
  }

  async function run(
    command: string | readonly string[],
    { stdin, env, exit = 0 }: RunOptions = {},
  ): Promise<KubectlOutput> {
    const child = start(command, env)
    const out = collectText(child.stdout!)
    const err = collectText(child.stderr!)
    child.stdin!.on('error', () => {}) // kubectl may exit without reading its standard input
    child.stdin!.end(stdin ?? '')
    const [code] = (await once(child, 'close')) as [number | null]
    const output = { out: out(), err: err() }
    if (code === exit) return output
    const commandLine = typeof command === 'string' ? command : command.join(' ')
    throw new Error(`kubectl ${commandLine}\nexited with ${code} instead of ${exit}\n${output.out}${output.err}`)
  }

  return {
    minor: program.minor,
    run,
    out: async (command, options) => (await run(command, options)).out,
    expectError: async (command, options) => (await run(command, { exit: 1, ...options })).err,
    json: async (command) => JSON.parse((await run(`${command} -o json`)).out),
    follow: (command) => follow(start(command), command),
  }
}

function collectText(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString('utf8')
}

function follow(child: ChildProcess, command: string): RunningCommand {
  const err = collectText(child.stderr!)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const closeEvent = once(child, 'close')
  return {
    async line(pattern) {
      for (;;) {
        const { done, value } = await lines.next()
        if (done) throw new Error(`kubectl ${command}\nexited before it printed ${pattern}\n${err()}`)
        if (pattern.test(value)) return value
      }
    },
    async stop() {
      child.kill()
      await closeEvent
    },
  }
}
