// Two watchers follow a writer through random disconnects, over HTTPS on the durable store. Every write has its own
// revision, and the writer records each one, so each watcher must see exactly those, in order, once.
import { expect, it } from 'vitest'
import { startInProcessServer } from './helpers/in-process-server.ts'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { watchFrom } from './helpers/watch.ts'

const EVENTS = 100_000
const LANES = 256
const PATH = '/api/v1/namespaces/default/configmaps'

it(`SYS-3 two watchers see ${EVENTS} events without gap, repeat or reorder through random disconnects`, async () => {
  const seed = seedFrom('WATCH_SEED')
  const random = seededRandom(seed)
  const server = await startInProcessServer()
  try {
    const start = server.store.revision
    const written: number[] = []
    let finished = false
    const watchers = [follow(start), follow(start)]
    await Promise.all(Array.from({ length: LANES }, (_, lane) => write(lane)))
    finished = true
    written.sort((a, b) => a - b)
    const newest = written.at(-1)!
    const seen = await Promise.all(watchers)
    for (const [index, { revisions, disconnects }] of seen.entries()) {
      expect(revisions.length, `seed ${seed}: watcher ${index}`).toBe(written.length)
      const wrong = revisions.findIndex((revision, at) => revision !== written[at])
      expect(wrong, `seed ${seed}: watcher ${index} saw ${revisions[wrong]} where ${written[wrong]} was due`).toBe(-1)
      expect(disconnects).toBeGreaterThan(20)
      console.log(
        `watcher ${index}: ${revisions.length} events, ${disconnects} disconnects, 0 gaps, 0 repeats, 0 reorders (seed ${seed})`,
      )
    }

    /** Each lane creates, updates and deletes its own objects, through the whole request path. */
    async function write(lane: number): Promise<void> {
      for (let round = 0; written.length < EVENTS; round++) {
        const name = `lane${lane}-${round}`
        await note('POST', PATH, { metadata: { name }, data: { round: '0' } })
        for (let change = 1; change < 6; change++) {
          await note('PUT', `${PATH}/${name}`, { metadata: { name }, data: { round: String(change) } })
        }
        await server.handle('DELETE', `${PATH}/${name}`)
      }
    }
    async function note(method: string, path: string, body: unknown): Promise<void> {
      const { status, json } = await server.handle(method, path, body)
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json)}`)
      written.push(Number(json.metadata.resourceVersion))
    }

    async function follow(after: number) {
      const revisions: number[] = []
      let last = after
      let disconnects = 0
      const isLast = (revision: number) => finished && revision >= newest
      while (!isLast(last)) {
        const patience = Math.floor(random() * 4_000)
        const watch = watchFrom(server, PATH, last)
        await watch.until((now) => now.length > patience || isLast(now.at(-1)?.revision ?? last)).catch(() => {})
        watch.close()
        disconnects++
        for (const event of await watch.whenEnded()) {
          if (event.type === 'ERROR') throw new Error(`seed ${seed}: ${JSON.stringify(event.object)}`)
          if (event.revision <= last) throw new Error(`seed ${seed}: ${event.revision} came after ${last}`)
          last = event.revision
          if (event.type !== 'DELETED') revisions.push(event.revision)
        }
      }
      return { revisions, disconnects }
    }
  } finally {
    await server.stop()
  }
}, 600_000)
