// The whole system on real disks: every component in its own process, a random workload, and SIGKILL at random to any
// component, including the server. After the faults the system must come to rest with nothing lost and nothing leaked.
// The seed repeats the workload and the kills, but not the interleaving of the processes.
//   WHOLE_CRASH_SECONDS=300 npx vitest run test/whole-crash.test.ts
import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { type Traces, tracesBelow } from './helpers/traces.ts'
import { agentDirOf, type Cluster, createCluster, DRIVER, NODES, poolOf } from './whole-crash/cluster.ts'
import { createFaults } from './whole-crash/faults.ts'
import { createJournal } from './whole-crash/journal.ts'
import { abandonedStorage, problemsAtRest } from './whole-crash/problems-at-rest.ts'
import { replay } from './whole-crash/replay.ts'
import { openStorage } from './whole-crash/storage.ts'
import { COLLECTIONS, createWatchRecorder } from './whole-crash/watch-recorder.ts'
import { createWorkload, NAMESPACES } from './whole-crash/workload.ts'

const skipped = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const SECONDS = Number(process.env.WHOLE_CRASH_SECONDS ?? 20)
const ACTORS = 6
/** How long a node is lost: in a long run, longer than its lease. */
const LOST_MS = Math.min(60_000, (SECONDS * 1_000) / 5)
/** As long as the longest backoff of an agent: what has not settled by then is stuck. */
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
      const seed = seedFrom('CRASH_SEED')
      console.log(`the whole system under SIGKILL: seed ${seed}`)
      const random = seededRandom(seed)
      const recorder = await createWatchRecorder(cluster)
      const journal = createJournal(cluster)
      const storage = openStorage(cluster)
      const faults = createFaults(cluster, seededRandom(seed + 1))
      const workload = createWorkload({ cluster, recorder, journal, storage, faults, random, lostMs: LOST_MS })
      const rests: string[] = []
      const deps = { cluster, recorder, storage, workload }
      await workload.setUp()
      await cluster.start()

      const workloadEnd = new AbortController()
      const checkingSizes = storage.watchSizes()
      const killing = faults.run()
      const acting = Promise.all(Array.from({ length: ACTORS }, () => workload.act(workloadEnd.signal)))
      try {
        await Promise.race([acting, killing, pause(SECONDS * 1_000)])
      } finally {
        workloadEnd.abort()
        await faults.end()
        await acting
        await killing
      }
      await workload.settle()

      await atRest('with everything there', () => problemsAtRest(deps))
      const dataProblems = await workload.checkData()
      await recorder.caughtUp()
      const before = counts()
      await removeEverything()
      await atRest('with everything deleted', () => leftovers())
      await recorder.caughtUp()
      const differences = await recorder.compareWithOneWatch()
      const history = recorder.history()
      await recorder.end()
      storage.end()
      await checkingSizes

      const lost = journal.lost(history)
      const violations = [
        ...recorder.violations,
        ...differences,
        ...replay(history, workload.deletedByHand).violations,
        ...storage.violations,
        ...dataProblems,
        ...cluster.unexpectedExits(),
      ]
      console.log(
        [
          `the whole system under SIGKILL: seed ${seed}, ${SECONDS} s`,
          `  kills: ${[...faults.kills].map(([sort, count]) => `${count} ${sort}`).join(', ')}`,
          journal.summary(),
          `  at rest: ${before.claims} claims, ${before.pods} pods (${before.running} running), ${before.volumes} volumes; data verified ${workload.dataFound} times`,
          `  settled ${rests.join('; ')}`,
          `  watches: ${history.length} events over ${recorder.resumed} reconnections; sizes checked ${storage.checks} times`,
          `  ${journal.acknowledged} acknowledged writes, ${lost.length} lost; ${violations.length} violations; 0 leaks`,
        ].join('\n'),
      )
      const evidence = lost.length + violations.length > 0 ? `, see ${await writeEvidence()}` : ''
      expect([...lost, ...violations], `seed ${seed}${evidence}`).toEqual([])
      expect(journal.acknowledged).toBeGreaterThan(SECONDS * 3)
      expect([...faults.kills.values()].reduce((sum, count) => sum + count)).toBeGreaterThan(SECONDS / 4)
      expect(faults.kills.get('server')).toBeGreaterThan(0)

      function counts() {
        const { claims, pods, volumes } = recorder.now
        const running = [...pods.values()].filter(({ status }) => status.phase === 'Running')
        return { claims: claims.size, pods: pods.size, running: running.length, volumes: volumes.size }
      }

      /** Deletes pods, claims, volumes, and storage that administrators created by calling the driver. */
      async function removeEverything(): Promise<void> {
        const remove = async (path: string) => void (await cluster.server().call('DELETE', path))
        for (const namespace of NAMESPACES) await remove(`/api/v1/namespaces/${namespace}/pods`)
        for (const namespace of NAMESPACES) await remove(`/api/v1/namespaces/${namespace}/persistentvolumeclaims`)
        await atRest('without pods and claims', async () =>
          [...recorder.now.pods.keys(), ...recorder.now.claims.keys()].map((key) => `${key} still exists`),
        )
        for (const { metadata } of recorder.now.volumes.values()) {
          workload.recordDeletion(metadata.uid)
          await remove(`${COLLECTIONS.volumes}/${metadata.name}`)
        }
        await atRest('without volumes', async () =>
          [...recorder.now.volumes.keys()].map((key) => `${key} still exists`),
        )
        for (const { id, node } of await abandonedStorage(deps)) {
          await storage.driver(node).controller.deleteVolume({ volumeId: id })
        }
      }

      /** Writes every state of every object, the drivers' volumes, and all logs, for debugging. */
      async function writeEvidence(): Promise<string> {
        const path = await mkdtemp(join(tmpdir(), `whole-crash-evidence-${seed}-`))
        const held = [...(await storage.held()).values()]
        const lines = [...recorder.history(), ...held].map((each) => JSON.stringify(each))
        await writeFile(join(path, 'history.jsonl'), lines.join('\n'))
        for (const { name, log } of cluster.components) await writeFile(join(path, `${name}.log`), log())
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
