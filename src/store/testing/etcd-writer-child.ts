// Child process of the etcd crash test: several writers write to an etcd store until the process is killed. Each transaction
// writes one value to three keys of its writer, which prints `ack <writer> <n>` once the transaction is acknowledged.
import { systemClock } from '../../base/clock.ts'
import { openEtcdStore } from '../etcd/index.ts'

const WRITERS = 20
const [endpoint = '', prefix = ''] = process.argv.slice(2)

const store = await openEtcdStore({ endpoints: [endpoint], prefix, clock: systemClock() })

async function write(writer: number): Promise<never> {
  for (let n = 1; ; n++) {
    const value = Buffer.from(`${n}.${'x'.repeat((n * 37) % 3_000)}`)
    await store.transact(() => ['a', 'b', 'c'].map((key) => ({ put: `w/${writer}/${key}`, value })))
    process.stdout.write(`ack ${writer} ${n}\n`)
  }
}

console.log('ready')
await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
