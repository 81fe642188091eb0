// Watches the cgroup hierarchy for new cgroups, with one inotify watch per cgroup.
import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface CgroupWatch {
  close(): void
}

/** Maximum number of inotify watches. Beyond this number, new cgroups may not be reported. */
const WATCHES_MAX = 4_096

/**
 * Calls `onCreate` after cgroups were created below `root`. Returns undefined if the root cannot be watched. A cgroup that is
 * created while its parent's watch is being added is found by listing the parent afterwards.
 */
export async function watchCgroups(root: string, onCreate: () => void): Promise<CgroupWatch | undefined> {
  const watches = new Map<string, FSWatcher>()
  let isClosed = false

  function remove(path: string): void {
    watches.get(path)?.close()
    watches.delete(path)
  }

  /** Watches a directory and those below it. Returns whether any of them is new. */
  async function add(path: string): Promise<boolean> {
    let isNew = false
    if (!watches.has(path)) {
      if (isClosed || watches.size >= WATCHES_MAX) return false
      try {
        const watcher = watch(path, { persistent: false }, (event) => {
          if (event === 'rename') void rescan(path) // created or removed; `change` is a write to a file of the cgroup
        })
        watcher.on('error', () => remove(path))
        watches.set(path, watcher)
        isNew = true
      } catch {
        return false // it was removed, or no watch is left
      }
    }
    for (const child of await listChildren(path)) if (await add(child)) isNew = true
    return isNew
  }

  async function rescan(path: string): Promise<void> {
    for (const watchedPath of watches.keys())
      if (watchedPath.startsWith(`${path}/`) && !(await exists(watchedPath))) remove(watchedPath)
    if (!(await exists(path))) remove(path)
    else if (await add(path)) onCreate()
  }

  await add(root)
  if (!watches.has(root)) return undefined
  return {
    close() {
      isClosed = true
      for (const watcher of watches.values()) watcher.close()
      watches.clear()
    },
  }
}

const listChildren = async (path: string): Promise<string[]> =>
  (await readdir(path, { withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(path, name))

const exists = (path: string): Promise<boolean> =>
  readdir(path).then(
    () => true,
    () => false,
  )
