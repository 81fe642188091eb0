// Starts the measured programs as their users do, in separate processes, and measures the time until they are ready, their CPU
// time and their memory.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { profileFlags } from './profiles.ts'

export interface ServerProcess {
  readonly port: number
  /** From before the process was started until it printed that it is ready. */
  readonly readyMs: number
  memory(): Memory
  /** CPU time used so far. */
  cpuMs(): number
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly dataDir: string
  /** The value of --store. Default: the embedded store in dataDir. */
  readonly store?: string
  /** Where the server writes a CPU profile when it stops. */
  readonly profileDir?: string
  /** `up` also runs the controllers. Default: `server`. */
  readonly command?: 'server' | 'up'
  readonly flags?: readonly string[]
  /** In addition to those of `npm start`. */
  readonly nodeFlags?: readonly string[]
  /** The directory of the programs. Default: this build. */
  readonly programs?: string | undefined
}

/** The flags of Node.js that bin/stowage, which `npm start` calls, sets for servers. */
export const NPM_START_FLAGS: readonly string[] = ['--max-semi-space-size=16']
/** The flags of Node.js that bin/stowage sets for agents. */
const NODE_START_FLAGS: readonly string[] = ['--max-semi-space-size=2']

/** Returns the flags that bin/stowage of another build sets for servers. */
function startFlagsOf(programs: string): readonly string[] {
  const script = readFileSync(join(programs, '..', 'bin', 'stowage'), 'utf8')
  const flags = /exec node ((?:--\S+ )+)"\$program"/.exec(script)?.[1]
  if (flags === undefined) throw new Error(`${programs}/../bin/stowage sets no flags of Node.js`)
  return flags.trim().split(' ')
}

/** The environment that bin/stowage sets for servers and agents. */
export const NPM_START_ENV = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '16384', MALLOC_TRIM_THRESHOLD_: '65536' }

export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const { dataDir, store, profileDir, command = 'server', flags: extraFlags = [], nodeFlags = [], programs } = options
  const flags = [
    '--data-dir',
    dataDir,
    '--listen',
    '127.0.0.1:0',
    '--output',
    'json',
    '--log-level',
    'warn',
    ...extraFlags,
  ]
  if (store) flags.push('--store', store)
  if (command === 'up') flags.push('--nodes', '0')
  const startMs = performance.now()
  const program = await startProgram({
    file: 'stowage.js',
    args: [command, ...flags],
    programs,
    profileDir,
    nodeFlags: [...(programs === undefined ? NPM_START_FLAGS : startFlagsOf(programs)), ...nodeFlags],
    env: NPM_START_ENV,
  })
  return {
    port: Number(new URL(JSON.parse(program.output).url).port),
    readyMs: performance.now() - startMs,
    memory: () => memoryOf(program.pid),
    cpuMs: program.cpuMs,
    stop: program.stop,
  }
}

/** Starts a CSI driver that keeps its volumes in memory and responds immediately. */
export const startFakeDriver = (options: {
  socket: string
  name: string
  /** Path of its control socket. Default: none. */
  control?: string
  /** The nodes to which volumes can be attached. Default: node-1. */
  nodes?: readonly string[]
  profileDir?: string | undefined
}): Promise<Program> =>
  startProgram({
    file: 'fake-driver.js',
    args: [
      ...['--endpoint', `unix://${options.socket}`, '--name', options.name, '--capacity', '4000Ti'],
      ...(options.control ? ['--control', options.control] : []),
      ...(options.nodes ?? []).flatMap((node) => ['--node-id', node]),
    ],
    profileDir: options.profileDir,
  })

/** Starts the local CSI driver with its own pool. */
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

/** Starts the agent of the node `bench`. */
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
    nodeFlags: NODE_START_FLAGS,
    env: NPM_START_ENV,
    profileDir: options.profileDir,
  })

export const startProvisioner = (options: {
  kubeconfig: string
  socket: string
  profileDir?: string | undefined
  flags?: readonly string[]
  env?: Readonly<Record<string, string>>
  programs?: string | undefined
}): Promise<Program> =>
  startProgram({
    file: 'stowage.js',
    programs: options.programs,
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

/** Starts the browser console on a free port. Resolves with the URL that it prints. */
export async function startConsole(kubeconfig: string): Promise<Program & { readonly url: string }> {
  const args = ['console', '--kubeconfig', kubeconfig, '--port', '0', '--output', 'json']
  const program = await startProgram({ file: 'stowage.js', args })
  return { ...program, url: JSON.parse(program.output).url }
}

export interface Program {
  readonly pid: number
  /** The standard output of the program until it was ready. */
  readonly output: string
  /** CPU time used so far. */
  cpuMs(): number
  stop(): Promise<void>
}

interface ProgramOptions {
  readonly file: string
  readonly args: readonly string[]
  /** The directory of the program. Default: this build. */
  readonly programs?: string | undefined
  readonly profileDir?: string | undefined
  readonly nodeFlags?: readonly string[]
  /** In addition to this process's environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Whether the program is ready, by its output so far. Default: after the first line on stdout. */
  readonly isReady?: (output: { readonly stdout: string; readonly stderr: string }) => boolean
}

/** Starts a program of this build, or of another one. */
async function startProgram(options: ProgramOptions): Promise<Program> {
  const { file, args, profileDir, nodeFlags = [], isReady = ({ stdout }) => stdout.includes('\n') } = options
  const { programs = dirname(process.argv[1]!) } = options
  const profile = profileFlags(profileDir, file === 'stowage.js' ? args[0]! : file.replace('.js', ''))
  const child = spawn(process.execPath, [...nodeFlags, ...profile, join(programs, file), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
  })
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const output = { stdout: '', stderr: '' }
  let isStarted = false
  await new Promise<void>((resolve, reject) => {
    void exit.then(() => reject(new Error(`${file} exited before it was ready: ${output.stderr}`)))
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].on('data', (chunk) => {
        if (isStarted) {
          if (stream === 'stderr') process.stderr.write(chunk)
          return
        }
        output[stream] += chunk
        isStarted = isReady(output)
        if (isStarted) resolve()
      })
    }
  })
  return {
    pid: child.pid!,
    output: output.stdout,
    cpuMs: () => cpuMs(child.pid!),
    stop: () => {
      child.kill('SIGTERM')
      return exit
    },
  }
}

/** Measures an idle Node.js process, which is the limit of start time and memory. */
export async function measureBareNode(): Promise<{ readyMs: number; memory: Memory }> {
  const startMs = performance.now()
  const script = 'process.stdout.write("ready\\n"); setInterval(() => {}, 1000)'
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const readyMs = performance.now() - startMs
  const result = { readyMs, memory: memoryOf(child.pid!) }
  child.kill()
  return result
}

/** Adds fields 14 and 15 of /proc/PID/stat, which are in ticks of 10 ms; the name in field 2 may contain spaces. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

export interface Memory {
  /** Heaps, stacks and buffers. */
  readonly anonymousMb: number
  /** Pages of files, such as the program and the store, which the kernel can drop at any time. */
  readonly mappedMb: number
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mbOf = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024
  return { anonymousMb: mbOf('RssAnon'), mappedMb: mbOf('RssFile') + mbOf('RssShmem') } // Shmem: a store on tmpfs
}

export function residentMb(pid: number): number {
  const { anonymousMb, mappedMb } = memoryOf(pid)
  return anonymousMb + mappedMb
}
