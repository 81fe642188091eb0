// The whole system on real disks: every part a process of its own, users and administrators who do whatever comes to
// their mind, and SIGKILL at random to any part, the server included. When the faults are over it must come to rest with
// nothing lost and nothing leaked. The dice are seeded; processes are not, so a seed repeats the plan and not the run.
//   WHOLE_CRASH_SECONDS=300 npx vitest run test/whole-crash.test.ts
import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { seededRandom } from './helpers/random.ts'
import { type Traces, tracesBelow } from './helpers/traces.ts'
import { agentDirOf, type Cluster, createCluster, DRIVER, NODES, poolOf } from './whole-crash/cluster.ts'
import { createFaults } from './whole-crash/faults.ts'
import { createJournal } from './whole-crash/journal.ts'
import { createPeople, NAMESPACES } from './whole-crash/people.ts'
import { abandonedStorage, problemsAtRest } from './whole-crash/quiet.ts'
import { replay } from './whole-crash/replay.ts'
import { openStorage } from './whole-crash/storage.ts'
import { COLLECTIONS, createWitness } from './whole-crash/witness.ts'

const skipped = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const SECONDS = Number(process.env.WHOLE_CRASH_SECONDS ?? 20)
const ACTORS = 6
/** A node is lost for so long: in a long run, longer than its lease. */
const LOST_MS = Math.min(60_000, (SECONDS * 1_000) / 5)
/** What is not at rest by then is stuck: it is as long as the longest backoff of an agent. */
const STUCK_MS = 120_000

describe.skipIf(skipped)(`the whole system under SIGKILL${skipped ? ` (${skipped})` : ''}`, () => {
  let dir: string
  let traces: Traces
  let cluster: Cluster

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-whole-')))
    traces = await tracesBelow(dir)
    cluster = await createCluster(dir)
  })
  afterAll(async () => {
    await cluster?.stop()
    await traces?.scrub()
    await rm(dir, { recursive: true, force: true })
  })

  it(
    `SYS-14 SYS-16 loses nothing and leaks nothing in ${SECONDS} s of kills`,
    async () => {
      const seed = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31))
      console.log(`the whole system under SIGKILL: seed ${seed}`)
      const random = seededRandom(seed)
      const witness = await createWitness(cluster)
      const journal = createJournal(cluster)
      const storage = openStorage(cluster)
      const faults = createFaults(cluster, seededRandom(seed + 1))
      const people = createPeople({ cluster, witness, journal, storage, faults, random, lostMs: LOST_MS })
      const rests: string[] = []
      const deps = { cluster, witness, storage, people }
      await people.begin()
      await cluster.start()

      const closingTime = new AbortController()
      const looking = storage.watchSizes()
      const killing = faults.run()
      const acting = Promise.all(Array.from({ length: ACTORS }, () => people.act(closingTime.signal)))
      try {
        await Promise.race([acting, killing, pause(SECONDS * 1_000)])
      } finally {
        closingTime.abort()
        await faults.end()
        await acting
        await killing
      }
      await people.settle()

      await atRest('with everything there', () => problemsAtRest(deps))
      const dataProblems = await people.checkData()
      await witness.caughtUp()
      const before = counts()
      await removeEverything()
      await atRest('with everything deleted', () => leftovers())
      await witness.caughtUp()
      const differences = await witness.compareWithOneWatch()
      const history = witness.history()
      await witness.end()
      storage.end()
      await looking

      const lost = journal.lost(history)
      const crimes = [
        ...witness.crimes,
        ...differences,
        ...replay(history, people.deletedByHand).crimes,
        ...storage.crimes,
        ...dataProblems,
        ...cluster.mishaps(),
      ]
      console.log(
        [
          `the whole system under SIGKILL: seed ${seed}, ${SECONDS} s`,
          `  kills: ${[...faults.kills].map(([sort, count]) => `${count} ${sort}`).join(', ')}`,
          journal.text(),
          `  there were then ${before.claims} claims, ${before.pods} pods (${before.running} running), ${before.volumes} volumes; data found whole ${people.dataFound} times`,
          `  at rest ${rests.join('; ')}`,
          `  watches: ${history.length} events over ${witness.resumed} reconnections; sizes looked at ${storage.looks} times`,
          `  ${journal.acknowledged} acknowledged writes, ${lost.length} lost; ${crimes.length} crimes; 0 leaks`,
        ].join('\n'),
      )
      const evidence = lost.length + crimes.length > 0 ? `, see ${await writeEvidence()}` : ''
      expect([...lost, ...crimes], `seed ${seed}${evidence}`).toEqual([])
      expect(journal.acknowledged).toBeGreaterThan(SECONDS * 3)
      expect([...faults.kills.values()].reduce((sum, count) => sum + count)).toBeGreaterThan(SECONDS / 4)
      expect(faults.kills.get('server')).toBeGreaterThan(0)

      function counts() {
        const { claims, pods, volumes } = witness.now
        const running = [...pods.values()].filter(({ status }) => status.phase === 'Running')
        return { claims: claims.size, pods: pods.size, running: running.length, volumes: volumes.size }
      }

      /** Pods, claims, volumes; and what administrators had kept, with the driver itself. */
      async function removeEverything(): Promise<void> {
        const remove = async (path: string) => void (await cluster.server().call('DELETE', path))
        for (const namespace of NAMESPACES) await remove(`/api/v1/namespaces/${namespace}/pods`)
        for (const namespace of NAMESPACES) await remove(`/api/v1/namespaces/${namespace}/persistentvolumeclaims`)
        await atRest('without pods and claims', async () =>
          [...witness.now.pods.keys(), ...witness.now.claims.keys()].map((key) => `${key} is still there`),
        )
        for (const { metadata } of witness.now.volumes.values()) {
          people.deletes(metadata.uid)
          await remove(`${COLLECTIONS.volumes}/${metadata.name}`)
        }
        await atRest('without volumes', async () =>
          [...witness.now.volumes.keys()].map((key) => `${key} is still there`),
        )
        for (const { id, node } of await abandonedStorage(deps)) {
          await storage.driver(node).controller.deleteVolume({ volumeId: id })
        }
      }

      /** What a reader of a failure wants: every state of every object, what the drivers hold, and all logs. */
      async function writeEvidence(): Promise<string> {
        const path = await mkdtemp(join(tmpdir(), `whole-crash-evidence-${seed}-`))
        const held = [...(await storage.held()).values()]
        const lines = [...witness.history(), ...held].map((each) => JSON.stringify(each))
        await writeFile(join(path, 'history.jsonl'), lines.join('\n'))
        for (const { name, log } of cluster.parts) await writeFile(join(path, `${name}.log`), log())
        return path
      }

      async function atRest(what: string, look: () => Promise<string[]>): Promise<void> {
        const beganMs = performance.now()
        let last: string[] = []
        for (;;) {
          const problems = await look()
          const tookMs = performance.now() - beganMs
          if (problems.length === 0) {
            rests.push(`${what} after ${(tookMs / 1_000).toFixed(1)} s${last.length > 0 ? `, last: ${last[0]}` : ''}`)
            return
          }
          last = problems
          if (tookMs > STUCK_MS) {
            const evidence = await writeEvidence()
            throw new Error(
              [`seed ${seed}: not at rest ${what} within ${STUCK_MS} ms:`, ...problems, `see ${evidence}`].join('\n'),
            )
          }
          await pause(500)
        }
      }
    },
    (SECONDS + 900) * 1_000,
  )

  async function leftovers(): Promise<string[]> {
    const places = NODES.flatMap((node) => [
      join(agentDirOf(dir, node), 'pods'),
      join(agentDirOf(dir, node), 'plugins', 'kubernetes.io', 'csi', DRIVER),
      ...['volumes', '.stowage/volumes', '.stowage/presences'].map((kind) => join(poolOf(dir, node), kind)),
    ])
    const found = await Promise.all(
      places.map(async (place) => (await readdir(place).catch(() => [])).map((name) => join(place, name))),
    )
    return [...(await traces.list()), ...found.flat()]
  }
})
