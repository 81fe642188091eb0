// Two watchers follow one writer through random disconnects. Every write has its own version, and the writer
// notes each one it was given; so each watcher must see exactly those, in order, each once.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { seededRandom } from './helpers/random.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { watchFrom } from './helpers/watch.ts'

const EVENTS = 100_000
const LANES = 64
const PATH = '/api/v1/namespaces/default/configmaps'

it(`SYS-3 two watchers see ${EVENTS} events without gap, repeat or reorder through random disconnects`, async () => {
  const seed = Number(process.env.WATCH_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const random = seededRandom(seed)
  const dataDir = await mkdtemp(join(tmpdir(), 'stowage-watch-'))
  const server = await startServer({ dataDir, flags: ['--log-level', 'warn'] })
  try {
    const start = Number((await server.call('GET', PATH)).json.metadata.resourceVersion)
    const written: number[] = []
    let finished = false
    const watchers = [follow(server, start), follow(server, start)]
    await Promise.all(Array.from({ length: LANES }, (_, lane) => write(lane)))
    finished = true
    written.sort((a, b) => a - b)
    const seen = await Promise.all(watchers)
    for (const [index, { revisions, disconnects }] of seen.entries()) {
      expect(revisions.length, `seed ${seed}: watcher ${index}`).toBe(written.length)
      expect(revisions, `seed ${seed}: watcher ${index}`).toEqual(written)
      console.log(`watcher ${index}: ${revisions.length} events, ${disconnects} disconnects, 0 gaps, 0 repeats, 0 reorders (seed ${seed})`)
      expect(disconnects).toBeGreaterThan(20)
    }

    /** Each lane creates, changes and deletes its own objects. */
    async function write(lane: number): Promise<void> {
      for (let round = 0; written.length < EVENTS; round++) {
        const name = `lane${lane}-${round}`
        await note('POST', PATH, { metadata: { name }, data: { round: '0' } })
        for (let change = 1; change < 8 && written.length < EVENTS; change++) {
          await note('PUT', `${PATH}/${name}`, { metadata: { name }, data: { round: String(change) } })
        }
        await server.call('DELETE', `${PATH}/${name}`)
      }
    }
    async function note(method: string, path: string, body: unknown): Promise<void> {
      const { status, json } = await server.call(method, path, body)
      expect(status).toBeLessThan(300)
      written.push(Number(json.metadata.resourceVersion))
    }

    async function follow(from: RunningServer, after: number) {
      const revisions: number[] = []
      let last = after
      let disconnects = 0
      let deletes = 0
      const isDone = () => finished && last >= written.at(-1)!
      while (!isDone()) {
        const patience = Math.floor(random() * 4_000)
        const watch = watchFrom(from, PATH, last)
        await watch.until((seenNow) => seenNow.length > patience || (finished && (seenNow.at(-1)?.revision ?? last) >= written.at(-1)!)).catch(() => {})
        watch.close()
        disconnects++
        for (const event of await watch.ended()) {
          expect(event.type).not.toBe('ERROR')
          expect(event.revision, `seed ${seed}: after ${last}`).toBeGreaterThan(last)
          last = event.revision
          if (event.type === 'DELETED') deletes++
          else revisions.push(event.revision)
        }
      }
      return { revisions, disconnects, deletes }
    }
  } finally {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}, 600_000)
