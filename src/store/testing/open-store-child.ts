// Child process of tests: opens the store in the directory that its argument names, prints `open`, and keeps the store open.
import { systemClock } from '../../base/clock.ts'
import { openLmdbStore } from '../lmdb.ts'

await openLmdbStore({ dir: process.argv[2] as string, clock: systemClock() })
console.log('open')
setInterval(() => {}, 60_000)
