// Child process of the crash test: several writers write to an LMDB store until the process is killed. Each transaction
// writes one value to three keys of its writer, which prints `ack <writer> <n>` once the transaction is acknowledged.
import { systemClock } from '../../base/clock.ts'
import { openLmdbStore } from '../lmdb.ts'

const [dir = '', writers] = process.argv.slice(2)

const store = await openLmdbStore({
  dir,
  clock: systemClock(),
  history: { keepMs: 50, entriesMax: 1_000 },
})

async function write(writer: number): Promise<never> {
  const firstNumber = Number((await store.get(`w/${writer}/a`))?.value.toString().split('.')[0] ?? 0) + 1
  for (let n = firstNumber; ; n++) {
    const value = Buffer.from(`${n}.${'x'.repeat((n * 37) % 3_000)}`)
    await store.transact(() => ['a', 'b', 'c'].map((key) => ({ put: `w/${writer}/${key}`, value })))
    process.stdout.write(`ack ${writer} ${n}\n`)
  }
}

console.log('ready')
await Promise.all(Array.from({ length: Number(writers) }, (_, writer) => write(writer)))
