// Clears the IO limits of loop numbers without a backing file at startup. Limits of a loop number remain after a detach and
// would apply to the next device with that number.
import { readFile } from 'node:fs/promises'
import type { IoLimits } from '../../host/host.ts'
import { listCgroups, readCgroupFile } from '../../host/limits/hierarchy.ts'
import type { DetectedLimits } from '../../host/limits/open-limits.ts'

const LIMIT_FILES = {
  v1: ['read_iops', 'write_iops', 'read_bps', 'write_bps'].map((key) => `blkio.throttle.${key}_device`),
  v2: ['io.max'],
}
const LOOP_LINE = /^7:(\d+) /gm

export async function clearStaleLimits(
  detectedLimits: DetectedLimits,
  limits: Pick<IoLimits, 'clear'>,
): Promise<string[]> {
  if (detectedLimits.version === 'none') return []
  const numbers = new Set<string>()
  for (const cgroup of await listCgroups(detectedLimits.root)) {
    for (const file of LIMIT_FILES[detectedLimits.version]) {
      for (const [, number] of (await readCgroupFile(detectedLimits.root, cgroup, file)).matchAll(LOOP_LINE))
        numbers.add(number!)
    }
  }
  const clearedDevices: string[] = []
  for (const number of numbers) {
    if (await hasBackingFile(number)) continue
    await limits.clear(`/dev/loop${number}`)
    clearedDevices.push(`/dev/loop${number}`)
  }
  return clearedDevices
}

const hasBackingFile = (number: string): Promise<boolean> =>
  readFile(`/sys/block/loop${number}/loop/backing_file`).then(
    () => true,
    () => false,
  )
