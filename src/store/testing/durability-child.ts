// Writes transactions one after the other and prints `ack <n>` when the store says the n-th is durable.
// Each value holds the text `transaction <n>.`, so that a system call trace shows where it is written.
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
