// Child process of the device error tests, with device-errors.c preloaded. Writes before, during and after a failure of the
// named system call, opens the store during the failure and after it, and prints the outcome of each step as a line of JSON.
import { rmSync, writeFileSync } from 'node:fs'
import { systemClock } from '../../base/clock.ts'
import { openLmdbStore } from '../lmdb.ts'

const [dir = '', fault = ''] = process.argv.slice(2)
const faultFile = process.env.FAULT_FILE as string
const print = (step: string, outcome: unknown) => console.log(JSON.stringify({ step, outcome }))
const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: Error) => `${error.name}: ${error.message}`,
  )
const openStore = () => openLmdbStore({ dir, clock: systemClock() })
const value = Buffer.alloc(5_000, 'x')

const store = await openStore()
const write = (key: string) => outcomeOf(store.transact(() => [{ put: key, value }]))
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
