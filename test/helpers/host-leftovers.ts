// Finds storage leftovers below a directory: loop devices on its files, and mounts in it. Tests check that nothing is left;
// `remove` removes the leftovers of a failed test.
import { systemClock } from '../../src/base/clock.ts'
import { openHost } from '../../src/host/index.ts'

export interface HostLeftovers {
  /** Returns the leftovers as text. */
  list(): Promise<string[]>
  remove(): Promise<void>
}

export async function findLeftoversBelow(dir: string): Promise<HostLeftovers> {
  const host = await openHost({ clock: systemClock() })
  const isBelow = (path: string) => path.startsWith(`${dir}/`)
  const listMounts = async () => (await host.mounts.list()).filter(({ target }) => isBelow(target))
  const listLoops = async () => (await host.loops.list().catch(() => [])).filter(({ file }) => isBelow(file))
  return {
    async list() {
      return [
        ...(await listLoops()).map(({ device, file }) => `${device} over ${file}`),
        ...(await listMounts()).map(({ source, target }) => `${source} at ${target}`),
      ]
    },
    async remove() {
      for (const { target } of (await listMounts()).toReversed()) {
        await host.filesystems.thaw(target)
        await host.mounts.unmount(target)
      }
      for (const { device } of await listLoops()) await host.loops.detach(device)
    },
  }
}
