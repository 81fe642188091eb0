// Finds the processes that use files below a mount point, and so prevent it from being unmounted.
import { readdir, readFile, readlink } from 'node:fs/promises'

/** Returns `pid (name)` of each process whose working directory, root, program or open file is below one of the paths. */
export async function findMountUsers(targets: readonly string[]): Promise<string[]> {
  const isBelow = (path: string) => targets.some((target) => path === target || path.startsWith(`${target}/`))
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const users = await Promise.all(
    pids.map(async (pid) => {
      const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
      const links = ['cwd', 'root', 'exe', ...descriptors.map((name) => `fd/${name}`)]
      const paths = await Promise.all(links.map((name) => readlink(`/proc/${pid}/${name}`).catch(() => '')))
      if (!paths.some(isBelow)) return []
      return [`${pid} (${(await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '?')).trim()})`]
    }),
  )
  return users.flat()
}
