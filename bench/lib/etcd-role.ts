// Measures the write throughput of etcd alone, as the limit of the Stowage store on etcd: Stowage's etcd client writes keys with
// values of a given size, each in a transaction that requires the key to be new.
import { systemClock } from '../../src/base/clock.ts'
import { EtcdClient } from '../../src/store/etcd/client.ts'
import { Compare_CompareTarget } from '../../src/store/etcd/gen/etcd_pb.js'
import { type CallersOptions, type Calls, runCallers } from './callers.ts'

export interface EtcdJob extends CallersOptions {
  /** HOST:PORT. */
  readonly endpoint: string
  /** Prefix of every key; a number follows. */
  readonly keyPrefix: string
  readonly valueBytes: number
}

const REQUEST_TIMEOUT_MS = 10_000
const NUMBER_DIGITS = 10

let keysUsed = 0

export async function runEtcd({ endpoint, keyPrefix, valueBytes, ...callers }: EtcdJob): Promise<Calls> {
  const client = new EtcdClient({ endpoints: [endpoint], clock: systemClock(), requestTimeoutMs: REQUEST_TIMEOUT_MS })
  const value = Buffer.alloc(valueBytes, 'x')
  try {
    return await runCallers(callers, async () => {
      const key = Buffer.from(keyPrefix + String(++keysUsed).padStart(NUMBER_DIGITS, '0'))
      const { succeeded } = await client.txn({
        compare: [{ key, target: Compare_CompareTarget.MOD, targetUnion: { case: 'modRevision', value: 0n } }],
        success: [{ request: { case: 'requestPut', value: { key, value } } }],
      })
      if (!succeeded) throw new Error(`etcd already has the key ${key}`)
    })
  } finally {
    client.close()
  }
}
