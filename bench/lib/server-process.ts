// Starts the program under test as its users do, in a process of its own, and says how long it took to be ready.
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { profileFlags } from './profiles.ts'

export interface ServerProcess {
  readonly port: number
  /** From before the process was started until it said that it is ready. */
  readonly readyMs: number
  residentMb(): number
  /** The processor time it has used so far. */
  cpuMs(): number
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly dataDir: string
  /** As for --store. Default: the embedded store in dataDir. */
  readonly store?: string
  /** Where to leave a CPU profile when it stops. */
  readonly profileDir?: string
  /** `up` brings the controllers along. Default: `server`. */
  readonly command?: 'server' | 'up'
  readonly flags?: readonly string[]
}

/** Most of what a request leaves behind is garbage soon: a larger young generation seldom has to move it. */
export const AS_NPM_START: readonly string[] = ['--max-semi-space-size=32']

export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const { dataDir, store, profileDir, command = 'server', flags: more = [] } = options
  const flags = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--output', 'json', '--log-level', 'warn', ...more]
  if (store) flags.push('--store', store)
  if (command === 'up') flags.push('--nodes', '0')
  const startMs = performance.now()
  const program = await startProgram({
    file: 'stowage.js',
    args: [command, ...flags],
    profileDir,
    nodeFlags: AS_NPM_START,
  })
  return {
    port: Number(new URL(JSON.parse(program.said).url).port),
    readyMs: performance.now() - startMs,
    residentMb: () => residentMb(program.pid),
    cpuMs: program.cpuMs,
    stop: program.stop,
  }
}

/** A CSI driver that keeps its volumes in memory and answers at once. */
export const startFakeDriver = (options: {
  socket: string
  name: string
  profileDir?: string | undefined
}): Promise<Program> =>
  startProgram({
    file: 'fake-driver.js',
    args: ['--endpoint', `unix://${options.socket}`, '--name', options.name, '--capacity', '4000Ti'],
    profileDir: options.profileDir,
  })

/** The local CSI driver over a pool of its own. */
export const startLocalDriver = (options: {
  socket: string
  pool: string
  /** Default: loop. */
  backend?: 'loop' | 'directory'
  profileDir?: string | undefined
}): Promise<Program> =>
  startProgram({
    file: 'stowage.js',
    args: [
      ...['driver', '--endpoint', `unix://${options.socket}`, '--pool', options.pool],
      ...['--node-id', 'bench', '--backend', options.backend ?? 'loop', '--log-level', 'error'],
    ],
    profileDir: options.profileDir,
  })

/** The agent of the node `bench`. */
export const startNode = (options: {
  kubeconfig: string
  rootDir: string
  socket: string
  maxPods: number
  profileDir?: string | undefined
}): Promise<Program> =>
  startProgram({
    file: 'stowage.js',
    args: [
      ...['node', '--kubeconfig', options.kubeconfig, '--node-name', 'bench', '--root-dir', options.rootDir],
      ...['--driver-socket', options.socket, '--max-pods', String(options.maxPods), '--log-level', 'error'],
    ],
    profileDir: options.profileDir,
  })

export const startProvisioner = (options: {
  kubeconfig: string
  socket: string
  profileDir?: string | undefined
  flags?: readonly string[]
  env?: Readonly<Record<string, string>>
}): Promise<Program> =>
  startProgram({
    file: 'stowage.js',
    args: [
      ...['provisioner', '--kubeconfig', options.kubeconfig, '--csi-address', options.socket, '--kube-api-qps', '-1'],
      ...(options.flags ?? []),
    ],
    env: options.env ?? {},
    profileDir: options.profileDir,
    isReady: ({ stderr }) => stderr.includes('"started"'),
  })

export const startResizer = (options: {
  kubeconfig: string
  socket: string
  profileDir?: string | undefined
}): Promise<Program> =>
  startProgram({
    file: 'stowage.js',
    args: ['resizer', '--kubeconfig', options.kubeconfig, '--csi-address', options.socket, '--kube-api-qps', '-1'],
    profileDir: options.profileDir,
    isReady: ({ stderr }) => stderr.includes('"started"'),
  })

export interface Program {
  readonly pid: number
  /** Its first line. */
  readonly said: string
  /** The processor time it has used so far. */
  cpuMs(): number
  stop(): Promise<void>
}

interface ProgramOptions {
  readonly file: string
  readonly args: readonly string[]
  readonly profileDir?: string | undefined
  readonly nodeFlags?: readonly string[]
  /** Beside this process's own. */
  readonly env?: Readonly<Record<string, string>>
  /** By what it has said. Default: a line. */
  readonly isReady?: (said: { readonly stdout: string; readonly stderr: string }) => boolean
}

/** One of the programs beside this one. */
async function startProgram(options: ProgramOptions): Promise<Program> {
  const { file, args, profileDir, nodeFlags = [], isReady = ({ stdout }) => stdout.includes('\n') } = options
  const profile = profileFlags(profileDir, file === 'stowage.js' ? args[0]! : file.replace('.js', ''))
  const child = spawn(process.execPath, [...nodeFlags, ...profile, join(dirname(process.argv[1]!), file), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const said = { stdout: '', stderr: '' }
  let ready = false
  await new Promise<void>((resolve, reject) => {
    void exited.then(() => reject(new Error(`${file} ended before it was ready: ${said.stderr}`)))
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].on('data', (chunk) => {
        if (ready) {
          if (stream === 'stderr') process.stderr.write(chunk)
          return
        }
        said[stream] += chunk
        ready = isReady(said)
        if (ready) resolve()
      })
    }
  })
  return {
    pid: child.pid!,
    said: said.stdout,
    cpuMs: () => cpuMs(child.pid!),
    stop: () => {
      child.kill('SIGTERM')
      return exited
    },
  }
}

/** What a node process takes that runs nothing: the limit of start times and of memory. */
export async function measureBareNode(): Promise<{ readyMs: number; residentMb: number }> {
  const startMs = performance.now()
  const script = 'process.stdout.write("ready\\n"); setInterval(() => {}, 1000)'
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const readyMs = performance.now() - startMs
  const measured = { readyMs, residentMb: residentMb(child.pid!) }
  child.kill()
  return measured
}

/** In ticks of 10 ms, from the 14th and 15th field of what the kernel says; the name in the second may hold spaces. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

export const residentMb = (pid: number): number =>
  Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024
