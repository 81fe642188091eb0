// Child process of the durability test: writes transactions one by one and prints `ack <n>` once the n-th is acknowledged.
// Each value contains `transaction <n>.`, so that the system call trace shows where it is written.
import { writeSync } from 'node:fs'
import { systemClock } from '../../base/clock.ts'
import { openLmdbStore } from '../lmdb.ts'

const [dir = '', transactions] = process.argv.slice(2)
const store = await openLmdbStore({ dir, clock: systemClock() })
for (let n = 1; n <= Number(transactions); n++) {
  await store.transact(() => [{ put: `k/${n % 7}`, value: Buffer.from(`transaction ${n}.`) }])
  writeSync(1, `ack ${n}\n`)
}
await store.close()
