// Tests that acknowledged writes survive SIGKILL. Writers record every response, the server is killed under load, and a new
// server on the same directory must have every recorded write. A watcher resumes from its last resourceVersion after every
// kill, and must end with the state that a list returns.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type ReceivedEvent, watchFrom } from './helpers/watch.ts'

const KILLS = Number(process.env.CRASH_KILLS ?? 30)
const WRITERS = 16
/** Writes that are acknowledged before a kill. */
const LOAD_WRITES = { min: 1, max: 100 }
const PATH = '/api/v1/namespaces/default/configmaps'
/** Excludes the ConfigMap that the server writes. */
const TEST_OBJECTS_SELECTOR = '&fieldSelector=metadata.name!=kube-root-ca.crt'

describe('SIGKILL under write load', () => {
  let dataDir: string
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-crash-'))
  })
  afterAll(() => rm(dataDir, { recursive: true, force: true }))

  it(`SYS-1 SYS-3 loses no acknowledged write in ${KILLS} kills, and watches resume without missing or repeated events`, {
    timeout: 120_000 + KILLS * 20_000, // on a busy machine a server needs several seconds to start
  }, async () => {
    const seed = seedFrom('CRASH_SEED')
    const random = seededRandom(seed)
    /** Last acknowledged state, by name. Deleted objects are absent. */
    const acknowledgedState = new Map<string, { revision: number; value: string | undefined }>()
    /** Values of writes without a response, by name. Each may or may not be stored. */
    const unansweredWrites = new Map<string, Set<string | undefined>>()
    const events: ReceivedEvent[] = []
    let writeCount = 0
    let nameCount = 0
    let lastWatchedRevision = 0
    let onWrite = () => {}

    for (let kill = 0; kill < KILLS; kill++) {
      const server = await startServer({ dataDir, flags: ['--log-level', 'warn'] })
      verify(await listAll(server), acknowledgedState, unansweredWrites, { seed, kill })
      for (const name of unansweredWrites.keys()) unansweredWrites.delete(name) // resolved by the list above
      await adoptListedState(server, acknowledgedState)

      const watch = watchFrom(server, PATH, lastWatchedRevision || 1, TEST_OBJECTS_SELECTOR)
      const killAtWrite = writeCount + LOAD_WRITES.min + Math.floor(random() * (LOAD_WRITES.max - LOAD_WRITES.min))
      const load = new Promise<void>((resolve) => {
        onWrite = () => {
          if (writeCount >= killAtWrite) resolve()
        }
      })
      const writers = Array.from({ length: WRITERS }, () => runWriter(server))
      await Promise.race([load, Promise.all(writers)]) // a writer fails on an unexpected response
      await server.kill()
      await Promise.all(writers)
      events.push(...(await watch.whenEnded()))
      lastWatchedRevision = events.at(-1)?.revision ?? lastWatchedRevision
    }

    const server = await startServer({ dataDir, flags: ['--log-level', 'warn'] })
    const finalState = await listAll(server)
    verify(finalState, acknowledgedState, unansweredWrites, { seed, kill: KILLS })
    const watch = watchFrom(server, PATH, lastWatchedRevision || 1, TEST_OBJECTS_SELECTOR)
    await watch.waitUntil(
      (received) => (received.at(-1)?.revision ?? lastWatchedRevision) >= newestRevisionIn(finalState),
    )
    watch.close()
    events.push(...(await watch.whenEnded()))
    expect(await server.stop()).toBe(0)

    expectOrdered(events)
    expect(stateFrom(events), `seed ${seed}: the watched state equals the list`).toEqual(
      new Map([...finalState].map(([name, { value }]) => [name, value])),
    )
    console.log(
      `crash test: seed ${seed}, ${KILLS} kills, ${writeCount} acknowledged writes, 0 lost; ${events.length} watch events, 0 missing`,
    )
    expect(writeCount).toBeGreaterThan(KILLS * 10)

    async function runWriter(server: RunningServer): Promise<void> {
      for (;;) {
        const existingNames = [...acknowledgedState.keys()]
        const roll = random()
        const isUpdate = roll > 0.5 && existingNames.length > 20
        const isDelete = roll > 0.9 && existingNames.length > 20
        const name = isUpdate ? existingNames[Math.floor(random() * existingNames.length)]! : `c${nameCount++}`
        if (unansweredWrites.has(name)) continue // one writer per object at a time
        const value = isDelete ? undefined : `v${writeCount}-${random()}`
        unansweredWrites.set(name, new Set([value]))
        try {
          const existingEntry = acknowledgedState.get(name)
          const body = { metadata: { name }, data: { value } }
          const response = isDelete
            ? await server.call('DELETE', `${PATH}/${name}`)
            : existingEntry
              ? await server.call('PUT', `${PATH}/${name}`, body)
              : await server.call('POST', PATH, body)
          if (response.status >= 300 && !(isDelete && response.status === 404))
            throw new Error(`unexpected ${response.status}: ${response.text}`)
          unansweredWrites.delete(name)
          if (isDelete) acknowledgedState.delete(name)
          else acknowledgedState.set(name, { revision: Number(response.json.metadata.resourceVersion), value })
          writeCount++
          onWrite()
        } catch (error) {
          if (error instanceof Error && error.message.startsWith('unexpected')) throw error
          return // the server was killed, and the outcome of this write is unknown
        }
      }
    }
  })
})

type ListedState = Map<string, { revision: number; value: string | undefined }>

async function listAll(server: RunningServer): Promise<ListedState> {
  const { json } = await server.call('GET', `${PATH}?${TEST_OBJECTS_SELECTOR}`)
  return new Map(
    json.items.map((item: any) => [
      item.metadata.name,
      { revision: Number(item.metadata.resourceVersion), value: item.data?.value },
    ]),
  )
}

function verify(
  listedState: ListedState,
  acknowledgedState: ListedState,
  unansweredWrites: Map<string, Set<string | undefined>>,
  { seed, kill }: { seed: number; kill: number },
): void {
  const context = `seed ${seed}, after kill ${kill}`
  for (const [name, { value, revision }] of acknowledgedState) {
    const listedEntry = listedState.get(name)
    if (listedEntry?.value === value) continue
    // Only a write without a response may have replaced the value.
    expect(
      unansweredWrites.get(name)?.has(listedEntry?.value),
      `${context}: ${name} was acknowledged as ${value}@${revision}, found ${listedEntry?.value}`,
    ).toBe(true)
  }
  for (const [name, { value }] of listedState) {
    const isExplained = acknowledgedState.get(name)?.value === value || unansweredWrites.get(name)?.has(value)
    expect(isExplained, `${context}: ${name}=${value} exists, but was never written`).toBe(true)
  }
}

/** Replaces the acknowledged state with the listed one, which includes stored writes without a response. */
async function adoptListedState(server: RunningServer, acknowledgedState: ListedState): Promise<void> {
  const listedState = await listAll(server)
  for (const name of acknowledgedState.keys()) if (!listedState.has(name)) acknowledgedState.delete(name)
  for (const [name, entry] of listedState) acknowledgedState.set(name, entry)
}

const newestRevisionIn = (listedState: ListedState): number =>
  Math.max(0, ...[...listedState.values()].map(({ revision }) => revision))

function expectOrdered(events: readonly ReceivedEvent[]): void {
  for (let i = 1; i < events.length; i++) {
    expect(events[i]!.revision, `event ${i} after event ${i - 1}`).toBeGreaterThan(events[i - 1]!.revision)
  }
}

function stateFrom(events: readonly ReceivedEvent[]): Map<string, string | undefined> {
  const state = new Map<string, string | undefined>()
  for (const { type, object } of events) {
    if (type === 'DELETED') {
      expect(state.has(object.metadata.name), `DELETED ${object.metadata.name} existed before`).toBe(true)
      state.delete(object.metadata.name)
    } else {
      expect(state.has(object.metadata.name), `${type} ${object.metadata.name}`).toBe(type === 'MODIFIED')
      state.set(object.metadata.name, object.data?.value)
    }
  }
  return state
}
