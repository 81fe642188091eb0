// Child process of the device error tests. Opens a store, truncates its file, and reads all values: a read of the missing pages
// through a memory map would end the process with SIGBUS, as it does for a page that the device cannot read.
import { statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'

const [dir = ''] = process.argv.slice(2)
const path = join(dir, 'store.mdb')
const clock = manualClock()
const VALUES = 300
/** Some values share pages with others, and some have their own pages. */
const sizeOf = (n: number) => (n % 3 === 0 ? 9_000 : 700)

const writtenStore = await openLmdbStore({ dir, clock })
await writtenStore.transact(() =>
  Array.from({ length: VALUES }, (_, n) => ({ put: `k/${n}`, value: Buffer.alloc(sizeOf(n), `value ${n} `) })),
)
await writtenStore.close()

const store = await openLmdbStore({ dir, clock })
truncateSync(path, Math.floor((statSync(path).size * 3) / 4))
const reasons: string[] = []
let intactCount = 0
for (let n = 0; n < VALUES; n++) {
  try {
    if ((await store.get(`k/${n}`))?.value.length === sizeOf(n)) intactCount++
  } catch (error) {
    reasons.push((error as Error).message)
  }
}
console.log(JSON.stringify({ step: 'intact', outcome: intactCount }))
console.log(JSON.stringify({ step: 'damaged', outcome: reasons }))
process.exit(0) // without closing the store, whose file has changed
