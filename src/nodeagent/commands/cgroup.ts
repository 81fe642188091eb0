// Creates and removes the cgroups of pods whose commands run on this machine. A cgroup is named after the UID of its pod, so
// that drivers can limit its IO. If cgroups are not available, commands run without one.
import { constants } from 'node:fs'
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type DetectedLimits, detectLimits } from '../../host/limits/open-limits.ts'

export interface PodCgroups {
  /** Creates the cgroup. Returns the cgroup.procs files to which a process writes its PID: none without cgroups. */
  create(uid: string): Promise<string[]>
  /** Returns the PIDs in the cgroup. */
  processes(uid: string): Promise<number[]>
  /** Returns false if a process that was killed has not left the cgroup yet. */
  remove(uid: string): Promise<boolean>
}

const PARENT = 'stowage-pods'

export async function openPodCgroups(): Promise<PodCgroups & { readonly message?: string }> {
  const limits: DetectedLimits = await detectLimits()
  if (limits.version === 'none') {
    return { create: async () => [], processes: async () => [], remove: async () => true, message: limits.message }
  }
  const parent = join(limits.root, PARENT)
  const directory = (uid: string) => join(parent, `pod${uid}`)
  return {
    async create(uid) {
      if (limits.version === 'v2') await enableControllers(limits.root)
      await mkdir(parent, { recursive: true })
      if (limits.version === 'v2') await enableControllers(parent)
      await mkdir(directory(uid), { recursive: true })
      return [join(directory(uid), 'cgroup.procs')]
    },
    async processes(uid) {
      const text = await readFile(join(directory(uid), 'cgroup.procs'), 'utf8').catch(() => '')
      return text.split('\n').filter(Boolean).map(Number)
    },
    async remove(uid) {
      try {
        await rmdir(directory(uid))
        return true
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EBUSY') return false
        if (code === 'ENOENT') return true
        throw error
      }
    },
  }
}

/**
 * Removes the cgroups of these pods, whose processes have exited, and an empty parent. Returns the number of pods whose cgroup
 * was removed.
 */
export async function removePodCgroups(uids: readonly string[]): Promise<number> {
  const limits = await detectLimits()
  if (limits.version === 'none') return 0
  const parent = join(limits.root, PARENT)
  let removedCount = 0
  for (const uid of uids) if (await removeEmptyCgroup(join(parent, `pod${uid}`))) removedCount++
  await rmdir(parent).catch(() => {}) // not empty if pods of other nodes have cgroups there
  return removedCount
}

/** Returns false if the cgroup does not exist. Its processes may have created cgroups in it. */
async function removeEmptyCgroup(directory: string): Promise<boolean> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined)
  if (!entries) return false
  for (const entry of entries) if (entry.isDirectory()) await removeEmptyCgroup(join(directory, entry.name))
  await rmdir(directory)
  return true
}

/** Enables io, and memory because the kernel needs it to attribute write-back IO. */
async function enableControllers(cgroup: string): Promise<void> {
  const flag = constants.O_WRONLY
  await writeFile(join(cgroup, 'cgroup.subtree_control'), '+io +memory', { flag }).catch(() => {})
}
