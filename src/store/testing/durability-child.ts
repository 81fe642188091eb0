// Child process of the durability test: writes transactions one by one and prints `ack <n>` once the n-th is acknowledged.
// Each value contains `transaction <n>.`, so that the system call trace shows where it is written. Each transaction is alone in
// its batch, or shares it with another one.
import { writeSync } from 'node:fs'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import { joinNextBatch } from './store.fixture.ts'

const [dir = '', transactions, batch] = process.argv.slice(2)
// The clock does not advance, so no commit is too slow for the thread of the event loop.
const store = await openLmdbStore({ dir, clock: manualClock() })
for (let n = 1; n <= Number(transactions); n++) {
  if (batch === 'shared') joinNextBatch(store)
  await store.transact(() => [{ put: `k/${n % 7}`, value: Buffer.from(`transaction ${n}.`) }])
  writeSync(1, `ack ${n}\n`)
}
await store.close()
