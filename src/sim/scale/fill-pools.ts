// The scale test of the storage capacity KEP: every node has a pool for a number of volumes, and there are as many pods as
// the pools have room for, each with an ephemeral volume, created as fast as the server accepts them. The driver's capacity
// reports lag behind, and its two classes share the pools. The scheduler must bind every pod; with capacity reservation no
// CreateVolume call may fail.
import { callDriver } from '../../csi/driver.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver } from '../../csi/index.ts'
import { createView } from '../engine/view.ts'
import { createCluster } from '../environment/cluster.ts'
import { createSimDriver } from '../environment/driver.ts'
import { runUntilSettled } from '../environment/run-until-settled.ts'
import { createSimulation } from '../environment/simulation.ts'
import { createClass, createDriver, createNode, createPod, poolOf } from './objects.ts'
import { runClaimControllers, runScheduler, runStorage } from './processes.ts'

export interface ScaleOptions {
  readonly nodes: number
  readonly volumesPerNode: number
  readonly reservesCapacity: boolean
  /** Default 1. */
  readonly seed?: number
}

export interface ScaleRun extends ScaleOptions {
  readonly pods: number
  readonly boundPods: number
  readonly failedCreates: number
  readonly virtualSeconds: number
  /** Scheduling attempts. */
  readonly attempts: number
}

const CLASSES = ['plain', 'tuned']
/** The maximum age of the capacity that GetCapacity reports. */
const REPORT_AGE_MS_MAX = 5_000
const CONCURRENT_CREATES = 64
const WITHIN_MS = 3_600_000

export async function fillEveryPool(options: ScaleOptions): Promise<ScaleRun> {
  const { nodes: nodeCount, volumesPerNode, reservesCapacity, seed = 1 } = options
  const simulation = createSimulation(seed)
  const cluster = await createCluster(simulation)
  const nodes = Array.from({ length: nodeCount }, (_, index) => `node-${index}`)
  const driver = createSimDriver(
    simulation,
    'driver',
    fakeSettings({ pools: nodes.map((node) => poolOf(node, volumesPerNode)) }),
  )
  const view = createView(cluster)
  const client = cluster.directClient()!
  const { name } = driver.settings

  await runUntilSettled(simulation, createObjects(), 'objects', WITHIN_MS)
  let failedCreates = 0
  let scheduler: ReturnType<typeof runScheduler> | undefined
  cluster.add('controllers', runClaimControllers)
  cluster.add(
    'storage',
    (env, processClient) => void runStorage(env, processClient, countFailures(driver.driverFor(env))),
  )
  cluster.add('scheduler', (env, processClient) => {
    scheduler = runScheduler(env, processClient, { reservesCapacity })
  })
  const reportCount = nodeCount * CLASSES.length
  await simulation.runUntil(() => view.capacities.size === reportCount, {
    withinMs: 600_000,
    waitingFor: 'capacity objects',
  })
  refreshReports()

  const startMs = simulation.nowMs
  const pods = nodeCount * volumesPerNode
  const countBound = () => [...view.pods.values()].filter(({ spec }) => spec?.nodeName).length
  await runUntilSettled(simulation, createPods(pods), 'pods', WITHIN_MS)
  let checkedMs = -1
  const isEveryPodBound = () => {
    if (view.changedMs === checkedMs) return false
    checkedMs = view.changedMs
    return countBound() === pods
  }
  // If the time is up, the result shows how many pods have no node.
  await simulation
    .runUntil(isEveryPodBound, { withinMs: WITHIN_MS, waitingFor: 'every pod to have a node' })
    .catch(() => {})
  const virtualSeconds = (simulation.nowMs - startMs) / 1_000
  return {
    ...options,
    pods,
    boundPods: countBound(),
    failedCreates,
    virtualSeconds,
    attempts: scheduler?.attempts ?? 0,
  }

  async function createObjects(): Promise<void> {
    await createDriver(client, name)
    for (const className of CLASSES) await createClass(client, className, name)
    for (const node of nodes) await createNode(client, node, name)
  }

  function countFailures(csi: CsiDriver): CsiDriver {
    return createCsiDriver((method, request, call) =>
      callDriver(csi, method, request, call).catch((error: unknown) => {
        if (method.name === 'CreateVolume') failedCreates++
        throw error
      }),
    )
  }

  function refreshReports(): void {
    driver.freezeCapacity()
    simulation.schedule(REPORT_AGE_MS_MAX, refreshReports)
  }

  async function createPods(count: number): Promise<void> {
    let nextIndex = 0
    const createRemaining = async () => {
      while (nextIndex < count) {
        const nth = nextIndex++
        const className = CLASSES[nth % CLASSES.length]!
        await createPod(client, `pod-${nth}`, { sizeGi: 1, className })
      }
    }
    await Promise.all(Array.from({ length: CONCURRENT_CREATES }, createRemaining))
  }
}
