// Runs one kubectl with its own home and cache, one kubeconfig and namespace. A run with an unexpected exit code fails with
// the whole command and its output.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { KubectlProgram } from '../helpers/kubectls.ts'

export interface KubectlOptions {
  readonly program: KubectlProgram
  readonly kubeconfig: string
  readonly namespace: string
  /** For its cache; the user's own files are neither read nor written. */
  readonly home: string
}

export interface RunOptions {
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  /** The expected exit code. Default 0. */
  readonly exit?: number
}

export interface Ran {
  readonly out: string
  readonly err: string
}

export interface Following {
  /** The next line that matches; earlier ones are skipped. */
  line(pattern: RegExp): Promise<string>
  stop(): Promise<void>
}

export interface Kubectl {
  readonly minor: number
  /** `'get pvc orders'` is split at blanks; pass a list if an argument contains one. */
  run(command: string | readonly string[], options?: RunOptions): Promise<Ran>
  /** Standard output of a run that ends with exit code 0. */
  out(command: string | readonly string[], options?: RunOptions): Promise<string>
  /** Standard error of a run that ends with exit code 1. */
  refusal(command: string | readonly string[], options?: RunOptions): Promise<string>
  /** The object or list as JSON. */
  json(command: string): Promise<any>
  /** Starts a long-running command. */
  follow(command: string): Following
}

export function createKubectl({ program, kubeconfig, namespace, home }: KubectlOptions): Kubectl {
  const start = (command: string | readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess => {
    const args = typeof command === 'string' ? command.split(' ') : [...command]
    return spawn(program.path, ['--kubeconfig', kubeconfig, '--namespace', namespace, ...args], {
      env: { PATH: process.env.PATH, HOME: home, KUBECACHEDIR: `${home}/cache`, TMPDIR: home, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
  }

  async function run(command: string | readonly string[], { stdin, env, exit = 0 }: RunOptions = {}): Promise<Ran> {
    const child = start(command, env)
    const out = textOf(child.stdout!)
    const err = textOf(child.stderr!)
    child.stdin!.on('error', () => {}) // it may exit without reading
    child.stdin!.end(stdin ?? '')
    const [code] = (await once(child, 'close')) as [number | null]
    const ran = { out: out(), err: err() }
    if (code === exit) return ran
    const shown = typeof command === 'string' ? command : command.join(' ')
    throw new Error(`kubectl ${shown}\nended with ${code} instead of ${exit}\n${ran.out}${ran.err}`)
  }

  return {
    minor: program.minor,
    run,
    out: async (command, options) => (await run(command, options)).out,
    refusal: async (command, options) => (await run(command, { exit: 1, ...options })).err,
    json: async (command) => JSON.parse((await run(`${command} -o json`)).out),
    follow: (command) => follow(start(command), command),
  }
}

function textOf(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString('utf8')
}

function follow(child: ChildProcess, command: string): Following {
  const err = textOf(child.stderr!)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const closed = once(child, 'close')
  return {
    async line(pattern) {
      for (;;) {
        const { done, value } = await lines.next()
        if (done) throw new Error(`kubectl ${command}\nended before it printed ${pattern}\n${err()}`)
        if (pattern.test(value)) return value
      }
    },
    async stop() {
      child.kill()
      await closed
    },
  }
}
