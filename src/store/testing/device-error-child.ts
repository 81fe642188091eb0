// Child process of the device error tests, with device-errors.c preloaded. Writes before, during and after a failure of the
// named system call, opens the store during the failure and after it, and prints the outcome of each step as a line of JSON.
// Each write is alone in its batch, or shares it with another transaction. The clock does not advance, so no commit is too slow
// for the thread of the event loop.
import { rmSync, writeFileSync } from 'node:fs'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import { joinNextBatch } from './store.fixture.ts'

const [dir = '', fault = '', batch = 'alone'] = process.argv.slice(2)
const faultFile = process.env.FAULT_FILE as string
const print = (step: string, outcome: unknown) => console.log(JSON.stringify({ step, outcome }))
const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: Error) => `${error.name}: ${error.message}`,
  )
const openStore = () => openLmdbStore({ dir, clock: manualClock() })
const value = Buffer.alloc(5_000, 'x')

const store = await openStore()
const write = (key: string) => {
  if (batch === 'shared') joinNextBatch(store)
  return outcomeOf(store.transact(() => [{ put: key, value }]))
}
print('before', await write('before'))
writeFileSync(faultFile, fault)
print('during', await write('during'))
print('read', await outcomeOf(store.get('before')))
print('problem', (await store.problem?.()) ?? 'none')
rmSync(faultFile)
print('after', await write('after'))
await outcomeOf(store.close())

writeFileSync(faultFile, fault)
print('open', await outcomeOf(openStore().then((openedStore) => openedStore.close())))
rmSync(faultFile)

const reopenedStore = await openStore()
const { entries } = await reopenedStore.list({ prefix: '' })
print(
  'keys',
  entries.map(({ key }) => key),
)
print('damaged', entries.filter((entry) => Buffer.compare(entry.value, value) !== 0).length)
await reopenedStore.close()
