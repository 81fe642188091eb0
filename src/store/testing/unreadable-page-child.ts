// Child process of the device error tests, with device-errors.c preloaded. Writes a store, makes the page with the header or the
// value of k/150 unreadable, waits for three passes of the scrub, or for none with "request", and prints the outcome of each
// step as a line of JSON.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import { inspectStore } from '../records/inspect-store.ts'
import { waitUntil } from './store.fixture.ts'

const [dir = '', target = ''] = process.argv.slice(2)
const path = join(dir, 'store.mdb')
const clock = manualClock()
const print = (step: string, outcome: unknown) => console.log(JSON.stringify({ step, outcome }))
const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: Error) => `${error.name}: ${error.message}`,
  )

const openStore = () => openLmdbStore({ dir, clock, scrubBytesPerSecond: 2 ** 20 })
const writtenStore = await openStore()
await writtenStore.transact(() =>
  Array.from({ length: 300 }, (_, n) => ({ put: `k/${n}`, value: Buffer.alloc(700, `value ${n} `) })),
)
await writtenStore.close()
const store = await openStore() // has no value in its cache
const readLength = async (key: string) => (await store.get(key))?.value.length

const place = readFileSync(path).lastIndexOf(target === 'header' ? 'k/150' : 'value 150 ')
writeFileSync(process.env.FAULT_FILE as string, `read-page ${Math.floor(place / 4_096)}`)
await waitUntil(async () => {
  if (target === 'request') return true
  await clock.advance(1_000)
  return store.stats().scrub?.passes === 3
})
print('k/150', await outcomeOf(readLength('k/150')))
print('k/1', await outcomeOf(readLength('k/1')))
print('write', await outcomeOf(store.transact(() => [{ put: 'k/1', value: Buffer.from('new') }])))
print('passes', store.stats().scrub?.passes)
const damagedRecords = store.damagedRecords?.() ?? []
print(
  'damaged',
  damagedRecords.map(({ key }) => key),
)
print('reason', damagedRecords[0]?.reason)
await store.close()

const { damagedPages } = inspectStore({ path })
print('check', { pages: damagedPages.length, problem: damagedPages[0]?.problem })
print('open', await outcomeOf(openLmdbStore({ dir, clock })))
