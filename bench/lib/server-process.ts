// Starts the program under test as its users do, in a process of its own, and says how long it took to be ready.
import { execFileSync, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'

export interface ServerProcess {
  readonly port: number
  /** From before the process was started until it said that it is ready. */
  readonly readyMs: number
  residentMb(): number
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly dataDir: string
  /** As for --store. Default: the embedded store in dataDir. */
  readonly store?: string
  /** Where to leave a CPU profile when it stops. */
  readonly profileDir?: string
}

export async function startServer({ dataDir, store, profileDir }: ServerOptions): Promise<ServerProcess> {
  const program = join(dirname(process.argv[1]!), 'stowage.js')
  const profile = profileDir ? ['--cpu-prof', '--cpu-prof-dir', profileDir] : []
  const flags = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--output', 'json', '--log-level', 'warn']
  if (store) flags.push('--store', store)
  const startMs = performance.now()
  const child = spawn(process.execPath, [...profile, program, 'server', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    void exited.then(() => reject(new Error('the server ended before it was ready')))
    child.stdout.on('data', (chunk) => {
      said += chunk
      if (said.includes('\n')) resolve(JSON.parse(said).url)
    })
  })
  return {
    port: Number(new URL(url).port),
    readyMs: performance.now() - startMs,
    residentMb: () => residentMb(child.pid!),
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

const residentMb = (pid: number): number =>
  Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024
