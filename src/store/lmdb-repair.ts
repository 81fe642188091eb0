// Carries out a repair that records/plan-repair.ts has planned: writes the records to a new file,
// which replaces the damaged one. The damaged file remains under another name. A crash leaves either the damaged or the new file in place.
import { existsSync } from 'node:fs'
import { link, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../base/files.ts'
import { lockDirectory } from './files/directory-lock.ts'
import { STORE_FILE } from './files/lmdb-copy.ts'
import { openLmdbMedium } from './lmdb.ts'
import type { RepairPlan } from './records/plan-repair.ts'

const BATCH_RECORDS = 1_000

/** Repairs the store in a directory that no other process uses. Returns the path of the damaged file. */
export async function repairStore(dir: string, { records, floors }: RepairPlan): Promise<string> {
  const lock = await lockDirectory(dir)
  const newDir = join(dir, 'repair.partial')
  const path = join(dir, STORE_FILE)
  try {
    await rm(newDir, { recursive: true, force: true })
    const medium = await openLmdbMedium(newDir)
    try {
      for (let start = 0; start < records.length || start === 0; start += BATCH_RECORDS) {
        await medium.write({ append: records.slice(start, start + BATCH_RECORDS), drop: [], floors })
      }
    } finally {
      await medium.close()
    }
    const damagedPath = unusedPath(`${path}.damaged`)
    await link(path, damagedPath)
    await rename(join(newDir, STORE_FILE), path)
    await rm(`${path}-lock`, { force: true }) // the table of readers of the damaged file
    await rm(newDir, { recursive: true, force: true })
    await syncDirectory(dir)
    return damagedPath
  } finally {
    await lock.release()
  }
}

function unusedPath(path: string): string {
  for (let number = 1; ; number++) {
    const candidate = `${path}-${number}`
    if (!existsSync(candidate)) return candidate
  }
}
