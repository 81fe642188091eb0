// Tests a whole system with a random workload on loop devices while random components fail. After the faults, no acknowledged
// write may be lost, no watch may have a gap, and no storage may be leaked. The seed does not reproduce the interleaving of
// the processes.
import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findLeftoversBelow, type HostLeftovers } from '../helpers/host-leftovers.ts'
import { seededRandom } from '../helpers/random.ts'
import { seedFrom } from '../helpers/seed.ts'
import { agentDirOf, type Cluster, DRIVER, poolOf } from './cluster.ts'
import { createFaults } from './faults.ts'
import { createJournal } from './journal.ts'
import { findAbandonedStorage, findProblemsAtRest } from './problems-at-rest.ts'
import { replay } from './replay-history.ts'
import { openStorage } from './storage.ts'
import { COLLECTIONS, createWatchRecorder } from './watch-recorder.ts'
import { createWorkload, NAMESPACES } from './workload.ts'

const USERS = 6
/** Time after which an unsettled object counts as stuck. */
const STUCK_AFTER_MS = 120_000

export interface CrashTestOptions {
  /** Name of the run in the output. */
  readonly name: string
  readonly title: string
  readonly seconds: number
  /** The test fails if fewer writes are acknowledged, because it then tests too little. */
  readonly writesPerSecondMin: number
  createCluster(dir: string): Promise<Cluster>
}

/** Adds the test, with its setup and cleanup, to the suite that calls this function. */
export function addCrashTest({ name, title, seconds, writesPerSecondMin, createCluster }: CrashTestOptions): void {
  /** Longest time that a failed node is down. In a long run it exceeds the node's lease. */
  const nodeDowntimeMs = Math.min(60_000, (seconds * 1_000) / 5)
  let dir: string
  let leftovers: HostLeftovers
  let cluster: Cluster

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-whole-')))
    leftovers = await findLeftoversBelow(dir)
    cluster = await createCluster(dir)
  })
  afterAll(async () => {
    await cluster?.stop()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  it(
    title,
    async () => {
      const seed = seedFrom('CRASH_SEED')
      console.log(`${name}: seed ${seed}`)
      const random = seededRandom(seed)
      const recorder = await createWatchRecorder(cluster)
      const journal = createJournal(cluster)
      const storage = openStorage(cluster)
      const faults = createFaults(cluster, seededRandom(seed + 1))
      const workload = createWorkload({
        cluster,
        recorder,
        journal,
        storage,
        faults,
        random,
        nodeDowntimeMs,
      })
      const settleTimes: string[] = []
      const deps = { cluster, recorder, storage, workload }
      await workload.setUp()
      await cluster.start()

      const workloadEnd = new AbortController()
      const sizeChecks = storage.watchSizes()
      const faultLoop = faults.run()
      const users = Promise.all(Array.from({ length: USERS }, () => workload.act(workloadEnd.signal)))
      try {
        await Promise.race([users, faultLoop, pause(seconds * 1_000)])
      } finally {
        workloadEnd.abort()
        await faults.stop()
        await users
        await faultLoop
      }
      await workload.settle()

      await waitUntilAtRest('with all objects', () => findProblemsAtRest(deps))
      const dataProblems = await workload.checkData()
      await recorder.waitUntilCaughtUp()
      const atRest = countObjects()
      await deleteEverything()
      await waitUntilAtRest('after all objects were deleted', () => listLeftovers())
      await recorder.waitUntilCaughtUp()
      const differences = await recorder.compareWithOneWatch()
      const history = recorder.history()
      await recorder.stop()
      storage.stop()
      await sizeChecks

      const lostWrites = journal.findLostWrites(history)
      const violations = [
        ...recorder.violations,
        ...differences,
        ...replay(history, workload.userDeletedUids).violations,
        ...storage.violations,
        ...dataProblems,
        ...cluster.unexpectedExits(),
      ]
      console.log(
        [
          `${name}: seed ${seed}, ${seconds} s`,
          `  faults: ${[...faults.counts].map(([kind, count]) => `${count} ${kind}`).join(', ')}`,
          journal.summary(),
          `  at rest: ${atRest.claims} claims, ${atRest.pods} pods (${atRest.running} running), ${atRest.volumes} volumes; data verified ${workload.verifiedData} times`,
          `  settled ${settleTimes.join('; ')}`,
          `  watches: ${history.length} events over ${recorder.resumptions} reconnections; sizes checked ${storage.checks} times`,
          `  ${journal.acknowledgedCount} acknowledged writes, ${lostWrites.length} lost; ${violations.length} violations`,
        ].join('\n'),
      )
      const debugFilesText = lostWrites.length + violations.length > 0 ? `, see ${await writeDebugFiles()}` : ''
      expect([...lostWrites, ...violations], `seed ${seed}${debugFilesText}`).toEqual([])
      expect(journal.acknowledgedCount).toBeGreaterThan(seconds * writesPerSecondMin)
      expect([...faults.counts.values()].reduce((sum, count) => sum + count)).toBeGreaterThan(seconds / 4)
      expect(faults.counts.get('server')).toBeGreaterThan(0)

      function countObjects() {
        const { claims, pods, volumes } = recorder.current
        const runningPods = [...pods.values()].filter(({ status }) => status.phase === 'Running')
        return { claims: claims.size, pods: pods.size, running: runningPods.length, volumes: volumes.size }
      }

      /** Deletes all pods, claims and volumes through the API, and abandoned storage by calling its driver. */
      async function deleteEverything(): Promise<void> {
        const requestDeletion = async (path: string) => void (await cluster.server().call('DELETE', path))
        for (const namespace of NAMESPACES) await requestDeletion(`/api/v1/namespaces/${namespace}/pods`)
        for (const namespace of NAMESPACES)
          await requestDeletion(`/api/v1/namespaces/${namespace}/persistentvolumeclaims`)
        await waitUntilAtRest('after pods and claims were deleted', async () =>
          [...recorder.current.pods.keys(), ...recorder.current.claims.keys()].map((key) => `${key} still exists`),
        )
        for (const { metadata } of recorder.current.volumes.values()) {
          workload.recordDeletion(metadata.uid)
          await requestDeletion(`${COLLECTIONS.volumes}/${metadata.name}`)
        }
        await waitUntilAtRest('after volumes were deleted', async () =>
          [...recorder.current.volumes.keys()].map((key) => `${key} still exists`),
        )
        for (const { id, node } of await findAbandonedStorage(deps)) {
          await storage.driver(node).controller.deleteVolume({ volumeId: id })
        }
      }

      /** Writes the history, the volumes of the drivers and all logs to a directory, for debugging. Returns its path. */
      async function writeDebugFiles(): Promise<string> {
        const path = await mkdtemp(join(tmpdir(), `whole-crash-debug-${seed}-`))
        const driverVolumes = [...(await storage.volumes()).values()]
        const lines = [...recorder.history(), ...driverVolumes].map((entry) => JSON.stringify(entry))
        await writeFile(join(path, 'history.jsonl'), lines.join('\n'))
        for (const { name, log } of cluster.components) await writeFile(join(path, `${name}.log`), log())
        return path
      }

      async function waitUntilAtRest(condition: string, findProblems: () => Promise<string[]>): Promise<void> {
        const startMs = performance.now()
        let lastProblems: string[] = []
        for (;;) {
          const problems = await findProblems()
          const elapsedMs = performance.now() - startMs
          if (problems.length === 0) {
            settleTimes.push(
              `${condition} after ${(elapsedMs / 1_000).toFixed(1)} s${lastProblems.length > 0 ? `, last: ${lastProblems[0]}` : ''}`,
            )
            return
          }
          lastProblems = problems
          if (elapsedMs > STUCK_AFTER_MS) {
            const debugDir = await writeDebugFiles()
            throw new Error(
              [
                `seed ${seed}: not at rest ${condition} within ${STUCK_AFTER_MS} ms:`,
                ...problems,
                `see ${debugDir}`,
              ].join('\n'),
            )
          }
          await pause(500)
        }
      }
    },
    (seconds + 900) * 1_000,
  )

  /** Returns the devices, mounts, directories and records that remain on the nodes. */
  async function listLeftovers(): Promise<string[]> {
    const paths = cluster.nodes.flatMap((node) => [
      join(agentDirOf(dir, node), 'pods'),
      join(agentDirOf(dir, node), 'plugins', 'kubernetes.io', 'csi', DRIVER),
      ...['volumes', '.stowage/volumes', '.stowage/presences'].map((kind) => join(poolOf(dir, node), kind)),
    ])
    const leftoverPaths = await Promise.all(
      paths.map(async (path) => (await readdir(path).catch(() => [])).map((name) => join(path, name))),
    )
    return [...(await leftovers.list()), ...leftoverPaths.flat()]
  }
}
