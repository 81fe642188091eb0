// Test fixture: the Host of the node that runs the tests, with a temporary pool. dispose() removes all devices, mounts, files and
// cgroups that the test created.
import { mkdir, mkdtemp, readFile, realpath, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import type { Host } from './host.ts'
import { detectLimits } from './limits/open-limits.ts'
import { openHost } from './open-host.ts'
import { createRun, type Run } from './run.ts'

export interface HostFixture {
  readonly host: Host
  readonly run: Run
  readonly pool: string
  /** Creates a directory in the pool. */
  directory(name: string): Promise<string>
  /** Creates a file of this size and attaches it as a loop device. */
  device(name: string, bytes: number): Promise<{ readonly file: string; readonly device: string }>
  /** Creates a cgroup in the hierarchy with the IO controller. */
  cgroup(name: string): Promise<{ readonly path: string; readonly directory: string }>
  dispose(): Promise<void>
}

export async function startHostFixture(): Promise<HostFixture> {
  const clock = systemClock()
  const run = createRun({ clock })
  const host = await openHost({ clock })
  const pool = await realpath(await mkdtemp(join(tmpdir(), 'stowage-host-')))
  const cgroups: string[] = []

  return {
    host,
    run,
    pool,

    async directory(name) {
      await mkdir(join(pool, name), { recursive: true })
      return join(pool, name)
    },

    async device(name, bytes) {
      const file = join(pool, name)
      await host.files.extend(file, bytes)
      return { file, device: await host.loops.attach(file) }
    },

    async cgroup(name) {
      const limits = await detectLimits()
      if (limits.version === 'none') throw new Error(limits.message)
      const path = `/stowage-test-${process.pid}-${name}`
      const directory = join(limits.root, path)
      await mkdir(directory)
      cgroups.push(directory)
      return { path, directory }
    },

    async dispose() {
      for (const { target } of (await host.mounts.list()).toReversed()) {
        if (!target.startsWith(`${pool}/`)) continue
        await host.filesystems.thaw(target)
        await host.mounts.unmount(target)
      }
      for (const { device, file } of await host.loops.list()) {
        if (file.startsWith(`${pool}/`)) await host.loops.detach(device)
      }
      for (const cgroup of cgroups.toReversed()) await removeCgroup(cgroup)
      await rm(pool, { recursive: true, force: true })
    },
  }
}

/** Removes the cgroup after moving its remaining processes to the parent cgroup. */
async function removeCgroup(directory: string): Promise<void> {
  const processIds = (await readFile(join(directory, 'cgroup.procs'), 'utf8')).split('\n').filter(Boolean)
  for (const id of processIds) await writeFile(join(directory, '..', 'cgroup.procs'), id).catch(() => {})
  await rmdir(directory)
}
