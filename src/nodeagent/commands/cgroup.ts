// A cgroup per pod whose commands run on this machine, named by the pod's uid so that drivers can limit its IO. Where
// cgroups cannot be created, commands run without one.
import { constants } from 'node:fs'
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type DetectedLimits, detectLimits } from '../../host/limits/open-limits.ts'

export interface PodCgroups {
  /** The cgroup.procs files to which a process writes its pid; empty without cgroups. */
  make(uid: string): Promise<string[]>
  /** The pids in the cgroup. */
  processes(uid: string): Promise<number[]>
  remove(uid: string): Promise<void>
}

const PARENT = 'stowage-pods'

export async function openPodCgroups(): Promise<PodCgroups & { readonly because?: string }> {
  const found: DetectedLimits = await detectLimits()
  if (found.version === 'none') {
    return { make: async () => [], processes: async () => [], remove: async () => {}, because: found.because }
  }
  const parent = join(found.root, PARENT)
  const directory = (uid: string) => join(parent, `pod${uid}`)
  return {
    async make(uid) {
      if (found.version === 'v2') await enableControllers(found.root)
      await mkdir(parent, { recursive: true })
      if (found.version === 'v2') await enableControllers(parent)
      await mkdir(directory(uid), { recursive: true })
      return [join(directory(uid), 'cgroup.procs')]
    },
    async processes(uid) {
      const text = await readFile(join(directory(uid), 'cgroup.procs'), 'utf8').catch(() => '')
      return text.split('\n').filter(Boolean).map(Number)
    },
    async remove(uid) {
      await rmdir(directory(uid)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    },
  }
}

/** Includes memory: without it the kernel cannot attribute write-back IO. */
async function enableControllers(cgroup: string): Promise<void> {
  const flag = constants.O_WRONLY
  await writeFile(join(cgroup, 'cgroup.subtree_control'), '+io +memory', { flag }).catch(() => {})
}
