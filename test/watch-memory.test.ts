// Tests that a server releases the memory of closed watches. The heap is measured after garbage collection, in the process
// of the server.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RunningServer, startServer } from './helpers/server.ts'

const WATCHES = 200
const ROUNDS = 5
/** The heap of an open watch: its connection, request and response. TLS has about 30 kB more outside the heap. */
const WATCH_HEAP_BYTES_MAX = 40_000
/** Compiled code and caches of the process grow a little in every round. */
const GROWTH_BYTES_MAX = 1_000_000

let dir: string
let server: RunningServer
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-watch-memory-'))
  const preload = `--require ${join(import.meta.dirname, 'helpers/report-heap.cjs')}`
  server = await startServer({ dataDir: dir, command: 'server', env: { NODE_OPTIONS: preload } })
})
afterAll(async () => {
  await server?.stop()
  await rm(dir, { recursive: true, force: true })
})

async function readHeapBytes(): Promise<number> {
  const reportsOf = (log: string) => [...log.matchAll(/^heap used: (\d+)$/gm)].map(([, bytes]) => Number(bytes))
  const count = reportsOf(server.log()).length
  process.kill(server.pid, 'SIGUSR2')
  await expect.poll(() => reportsOf(server.log()).length, { timeout: 20_000 }).toBeGreaterThan(count)
  return reportsOf(server.log()).at(-1)!
}

async function countOpenWatches(): Promise<number> {
  const { text } = await server.call('GET', '/metrics')
  const values = [...text.matchAll(/^apiserver_longrunning_requests\{[^}]*\} (\d+)$/gm)]
  return values.reduce((sum, [, value]) => sum + Number(value), 0)
}

it('SYS-19 a server releases the memory of closed watches', async () => {
  const path = '/api/v1/persistentvolumeclaims?watch=1&allowWatchBookmarks=true'
  const closedBytes: number[] = []
  const openBytes: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const watches = await Promise.all(Array.from({ length: WATCHES }, () => server.open('GET', path)))
    expect(await countOpenWatches()).toBe(WATCHES)
    openBytes.push(await readHeapBytes())
    for (const watch of watches) watch.on('error', () => {}).destroy()
    await expect.poll(countOpenWatches, { timeout: 20_000 }).toBe(0)
    closedBytes.push(await readHeapBytes())
  }
  const lastRound = ROUNDS - 1
  expect(openBytes[lastRound]! - closedBytes[lastRound]!).toBeLessThan(WATCHES * WATCH_HEAP_BYTES_MAX)
  expect(closedBytes[lastRound]! - closedBytes[1]!).toBeLessThan(GROWTH_BYTES_MAX)
})
