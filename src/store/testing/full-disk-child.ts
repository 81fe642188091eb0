// Child process of the full-disk tests: writes until the store rejects a write, then reads and writes again.
import { systemClock } from '../../base/clock.ts'
import { openLmdbStore } from '../lmdb.ts'

const store = await openLmdbStore({ dir: process.argv[2] as string, clock: systemClock() })
let transactions = 0
try {
  for (; transactions < 10_000; transactions++) {
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
