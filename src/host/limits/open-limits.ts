// Opens the IO limits of this node: io.max of cgroup v2, blkio of cgroup v1, or none. Detects which of them is available.
import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { IoLimits } from '../host.ts'
import { parseMountInfo } from '../mountinfo.ts'
import { readCgroupFile } from './hierarchy.ts'
import { createNoLimits } from './none.ts'
import { createV1Limits } from './v1.ts'
import { createV2Limits } from './v2.ts'

export type DetectedLimits =
  | { readonly version: 'v1' | 'v2'; readonly root: string }
  | { readonly version: 'none'; readonly message: string }

export async function openLimits(mountInfo?: string): Promise<IoLimits> {
  const detectedLimits = await detectLimits(mountInfo)
  switch (detectedLimits.version) {
    case 'v2':
      return createV2Limits(detectedLimits)
    case 'v1':
      return createV1Limits(detectedLimits)
    case 'none':
      return createNoLimits(detectedLimits.message)
  }
}

export async function detectLimits(mountInfo = '/proc/self/mountinfo'): Promise<DetectedLimits> {
  const entries = parseMountInfo(await readFile(mountInfo, 'utf8'))
  const reasons: string[] = []

  for (const { target: root } of entries.filter((entry) => entry.type === 'cgroup2')) {
    const controllers = (await readCgroupFile(root, '/', 'cgroup.controllers')).trim().split(/\s+/)
    if (!controllers.includes('io')) reasons.push(`the cgroup v2 hierarchy at ${root} does not have the io controller`)
    else if (!(await isWritable(join(root, 'cgroup.subtree_control')))) reasons.push(`${root} is not writable`)
    else return { version: 'v2', root }
  }

  const blkioMounts = entries.filter((entry) => entry.type === 'cgroup' && entry.superOptions.includes('blkio'))
  for (const { target: root } of blkioMounts) {
    if (await isWritable(join(root, 'blkio.throttle.write_bps_device'))) return { version: 'v1', root }
    reasons.push(`the blkio hierarchy at ${root} is not writable`)
  }

  if (blkioMounts.length === 0) reasons.push('no cgroup v1 hierarchy with blkio is mounted')
  return { version: 'none', message: `IO limits cannot be enforced here: ${reasons.join(', and ')}` }
}

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )
