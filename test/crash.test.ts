// Acknowledged writes survive SIGKILL at any moment. Writers record every response, the process is killed under load, a new
// one opens the same directory, and everything recorded must be there. A watcher resumes from its last resourceVersion
// after every kill, and must end with exactly what a list returns.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type SeenEvent, watchFrom } from './helpers/watch.ts'

const KILLS = Number(process.env.CRASH_KILLS ?? 50)
const WRITERS = 16
const LOAD_MS = { min: 20, max: 400 }
const PATH = '/api/v1/namespaces/default/configmaps'

describe('SIGKILL under write load', () => {
  let dataDir: string
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-crash-'))
  })
  afterAll(() => rm(dataDir, { recursive: true, force: true }))

  it(`SYS-1 SYS-3 loses no acknowledged write in ${KILLS} kills, and watches resume without gap or repeat`, async () => {
    const seed = seedFrom('CRASH_SEED')
    const random = seededRandom(seed)
    /** Name → the newest resourceVersion a writer received, or deleted. */
    const acknowledged = new Map<string, { revision: number; value: string | undefined }>()
    /** Writes without a response: they may or may not have happened. */
    const unknown = new Map<string, Set<string | undefined>>()
    const events: SeenEvent[] = []
    let writes = 0
    let names = 0
    let watchedTo = 0

    for (let kill = 0; kill < KILLS; kill++) {
      const server = await startServer({ dataDir, flags: ['--log-level', 'warn'] })
      verify(await listAll(server), acknowledged, unknown, { seed, kill })
      for (const name of unknown.keys()) unknown.delete(name) // the list above resolved them
      await learn(server, acknowledged)

      const watch = watchFrom(server, PATH, watchedTo || 1)
      const writers = Array.from({ length: WRITERS }, () => write(server))
      await new Promise((resolve) => setTimeout(resolve, LOAD_MS.min + random() * (LOAD_MS.max - LOAD_MS.min)))
      await server.kill()
      await Promise.all(writers)
      events.push(...(await watch.ended()))
      watchedTo = events.at(-1)?.revision ?? watchedTo
    }

    const server = await startServer({ dataDir, flags: ['--log-level', 'warn'] })
    const final = await listAll(server)
    verify(final, acknowledged, unknown, { seed, kill: KILLS })
    const watch = watchFrom(server, PATH, watchedTo || 1)
    await watch.until((seen) => (seen.at(-1)?.revision ?? watchedTo) >= newestIn(final))
    watch.close()
    events.push(...(await watch.ended()))
    expect(await server.stop()).toBe(0)

    expectOrdered(events)
    expect(stateFrom(events), `seed ${seed}: what the watcher saw adds up to the list`).toEqual(
      new Map([...final].map(([name, { value }]) => [name, value])),
    )
    console.log(
      `crash test: seed ${seed}, ${KILLS} kills, ${writes} acknowledged writes, 0 lost; ${events.length} watch events, 0 missing`,
    )
    expect(writes).toBeGreaterThan(KILLS * 10)

    async function write(server: RunningServer): Promise<void> {
      for (;;) {
        const existing = [...acknowledged.keys()]
        const roll = random()
        const isUpdate = roll > 0.5 && existing.length > 20
        const isDelete = roll > 0.9 && existing.length > 20
        const name = isUpdate ? existing[Math.floor(random() * existing.length)]! : `c${names++}`
        if (unknown.has(name)) continue // one writer per object at a time
        const value = isDelete ? undefined : `v${writes}-${random()}`
        unknown.set(name, new Set([value]))
        try {
          const before = acknowledged.get(name)
          const body = { metadata: { name }, data: { value } }
          const reply = isDelete
            ? await server.call('DELETE', `${PATH}/${name}`)
            : before
              ? await server.call('PUT', `${PATH}/${name}`, body)
              : await server.call('POST', PATH, body)
          if (reply.status >= 300 && !(isDelete && reply.status === 404))
            throw new Error(`unexpected ${reply.status}: ${reply.text}`)
          unknown.delete(name)
          if (isDelete) acknowledged.delete(name)
          else acknowledged.set(name, { revision: Number(reply.json.metadata.resourceVersion), value })
          writes++
        } catch (error) {
          if (error instanceof Error && error.message.startsWith('unexpected')) throw error
          return // the connection broke: the server was killed, and the outcome of this write is unknown
        }
      }
    }
  })
})

type Listed = Map<string, { revision: number; value: string | undefined }>

async function listAll(server: RunningServer): Promise<Listed> {
  const { json } = await server.call('GET', `${PATH}?fieldSelector=metadata.name!=kube-root-ca.crt`)
  return new Map(
    json.items.map((item: any) => [
      item.metadata.name,
      { revision: Number(item.metadata.resourceVersion), value: item.data?.value },
    ]),
  )
}

function verify(
  listed: Listed,
  acknowledged: Listed,
  unknown: Map<string, Set<string | undefined>>,
  { seed, kill }: { seed: number; kill: number },
): void {
  const at = `seed ${seed}, after kill ${kill}`
  for (const [name, { value, revision }] of acknowledged) {
    const found = listed.get(name)
    if (found?.value === value) continue
    // Only a write without a response may have replaced it.
    expect(
      unknown.get(name)?.has(found?.value),
      `${at}: ${name} was acknowledged as ${value}@${revision}, found ${found?.value}`,
    ).toBe(true)
  }
  for (const [name, { value }] of listed) {
    const isExplained = acknowledged.get(name)?.value === value || unknown.get(name)?.has(value)
    expect(isExplained, `${at}: ${name}=${value} exists, though no write of it was acknowledged or sent`).toBe(true)
  }
}

/** After a restart the list resolves writes without a response. */
async function learn(server: RunningServer, acknowledged: Listed): Promise<void> {
  const listed = await listAll(server)
  for (const name of acknowledged.keys()) if (!listed.has(name)) acknowledged.delete(name)
  for (const [name, entry] of listed) acknowledged.set(name, entry)
}

const newestIn = (listed: Listed): number => Math.max(0, ...[...listed.values()].map(({ revision }) => revision))

function expectOrdered(events: readonly SeenEvent[]): void {
  for (let i = 1; i < events.length; i++) {
    expect(events[i]!.revision, `event ${i} after event ${i - 1}`).toBeGreaterThan(events[i - 1]!.revision)
  }
}

function stateFrom(events: readonly SeenEvent[]): Map<string, string | undefined> {
  const state = new Map<string, string | undefined>()
  for (const { type, object } of events) {
    if (type === 'DELETED') {
      expect(state.has(object.metadata.name), `DELETED ${object.metadata.name} was known`).toBe(true)
      state.delete(object.metadata.name)
    } else {
      expect(state.has(object.metadata.name), `${type} ${object.metadata.name}`).toBe(type === 'MODIFIED')
      state.set(object.metadata.name, object.data?.value)
    }
  }
  return state
}
