// Child process of the full-disk test: writes until the file size limit is reached, then shows that the store still works.
import { systemClock } from '../../base/clock.ts'
import { openLmdbStore } from '../lmdb.ts'

const store = await openLmdbStore({ dir: process.argv[2] as string, clock: systemClock() })
let written = 0
try {
  for (; written < 10_000; written++) {
    await store.transact(() => [{ put: `k/${written}`, value: Buffer.alloc(10_000) }])
  }
} catch (error) {
  console.log(`refused ${(error as Error).name} ${(error as Error).message}`)
}
console.log(`written ${written} revision ${store.revision} keys ${store.stats().keys}`)
console.log(`read ${(await store.get('k/0'))?.value.length}`)
const { revision } = await store.transact(() => [{ put: 'k/0', value: Buffer.from('small') }])
console.log(`small ${revision === written + 1}`)
await store.close()
