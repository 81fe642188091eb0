// Runs the local CSI driver of the built program in its own process, which can be killed and restarted on the same pool and
// socket. `dispose` removes everything that it left on the machine.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { type CsiConnection, connectDriver } from '../../src/csi/index.ts'
import { type Host, openHost } from '../../src/host/index.ts'
import { buildProgram } from './build-program.ts'

export interface LocalDriver {
  readonly dir: string
  readonly pool: string
  readonly endpoint: string
  readonly csi: CsiConnection
  readonly host: Host
  /** The message that the driver prints when it is ready. */
  readonly ready: { readonly backend: string; readonly shortcomings: readonly string[]; readonly metricsPort?: number }
  log(): string
  start(): Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
  /** Returns the loop devices and mounts of this driver on the machine, as text. */
  leftovers(): Promise<string[]>
  dispose(): Promise<void>
}

export interface LocalDriverOptions {
  readonly flags: readonly string[]
  /** Runs the driver as this user, who owns its directory. */
  readonly uid?: number
}

export async function startLocalDriver({ flags, uid }: LocalDriverOptions): Promise<LocalDriver> {
  const program = await buildProgram()
  const clock = systemClock()
  const host = await openHost({ clock })
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-driver-')))
  if (uid !== undefined) await chown(dir, uid, uid)
  const pool = join(dir, 'pool')
  const endpoint = `unix://${join(dir, 'csi.sock')}`
  const csi = connectDriver({ address: endpoint, clock, log: silentLog, timeoutMs: 60_000 })
  let child: ChildProcess | undefined
  let log = ''
  let ready: LocalDriver['ready'] = { backend: '', shortcomings: [] }

  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }

  const driver: LocalDriver = {
    dir,
    pool,
    endpoint,
    csi,
    host,
    get ready() {
      return ready
    },
    log: () => log,
    async start() {
      const endpointFlags = ['--endpoint', endpoint, '--node-id', 'node-1', '--pool', pool, '--output', 'json']
      const startedChild = spawn(process.execPath, [program, 'driver', ...endpointFlags, ...flags], {
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: dir,
        ...(uid === undefined ? {} : { uid, gid: uid }),
      })
      child = startedChild
      startedChild.stderr.setEncoding('utf8').on('data', (text: string) => {
        log = (log + text).slice(-200_000)
      })
      const exit = once(startedChild, 'exit')
      const line = once(createInterface({ input: startedChild.stdout }), 'line').then(([text]) => text as string)
      const earlyExit = exit.then(() => {
        throw new Error(`the driver exited before it was ready:\n${log}`)
      })
      ready = JSON.parse(await Promise.race([line, earlyExit]))
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    async leftovers() {
      const loops = (await host.loops.list()).filter(({ file }) => file.startsWith(`${dir}/`))
      const mounts = (await host.mounts.list()).filter(({ target }) => target.startsWith(`${dir}/`))
      return [
        ...loops.map(({ device, file }) => `${device} over ${file}`),
        ...mounts.map(({ source, target }) => `${source} at ${target}`),
      ]
    },
    async dispose() {
      csi.close()
      await end('SIGKILL')
      for (const { target } of (await host.mounts.list()).toReversed()) {
        if (!target.startsWith(`${dir}/`)) continue
        await host.filesystems.thaw(target)
        await host.mounts.unmount(target)
      }
      for (const { device, file } of await host.loops.list().catch(() => [])) {
        if (file.startsWith(`${dir}/`)) await host.loops.detach(device)
      }
      await rm(dir, { recursive: true, force: true })
    },
  }
  await mkdir(pool)
  if (uid !== undefined) await chown(pool, uid, uid)
  await driver.start().catch(async (error) => {
    await driver.dispose()
    throw error
  })
  return driver
}
