// Child process of the full-disk tests: writes until the store rejects a write, then reads and writes again. Each write is alone
// in its batch, or shares it with another transaction. The clock does not advance, so no commit is too slow for the thread of the
// event loop.
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import { joinNextBatch } from './store.fixture.ts'

const [dir = '', batch] = process.argv.slice(2)
const store = await openLmdbStore({ dir, clock: manualClock() })
let transactions = 0
try {
  for (; transactions < 10_000; transactions++) {
    if (batch === 'shared') joinNextBatch(store)
    await store.transact(() => [{ put: `k/${transactions}`, value: Buffer.alloc(10_000) }])
  }
} catch (error) {
  console.log(`rejected ${(error as Error).name} ${(error as Error).message}`)
}
console.log(`written ${transactions} revision ${store.revision} keys ${store.stats().keys}`)
console.log(`read ${(await store.get('k/0'))?.value.length}`)
const { revision } = await store.transact(() => [{ put: 'k/0', value: Buffer.from('small') }])
console.log(`small ${revision === transactions + 1}`)
await store.close()
