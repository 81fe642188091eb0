// Scenario: the scale test of the design document. On every node a pool for so many volumes, and as many pods as all of
// them can take, each with a volume of its own, created as fast as the server takes them. The driver reports what is
// free only now and then, and its two classes draw on the same pools.
// Promise: every pod gets a node. With reservation no volume is asked for where it does not fit.
import { callDriver } from '../../csi/driver.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver } from '../../csi/index.ts'
import { answerTo } from '../answer.ts'
import { createSchedulingView } from '../checkers/scheduling-view.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createWorld } from '../world.ts'
import { createClass, createDriver, createNode, createPod, poolOf } from './scheduling-objects.ts'
import { runClaimControllers, runScheduler, runStorage } from './scheduling-processes.ts'

export interface ScaleOptions {
  readonly nodes: number
  readonly volumesPerNode: number
  readonly capacityReservation: boolean
  /** Default 1. */
  readonly seed?: number
}

export interface ScaleRun extends ScaleOptions {
  readonly pods: number
  readonly bound: number
  readonly failedCreates: number
  readonly virtualSeconds: number
  /** Searches for a node. */
  readonly attempts: number
}

const CLASSES = ['plain', 'tuned']
/** What GetCapacity says is up to this old. */
const REPORTS_LATE_MS = 5_000
const CREATES_AT_ONCE = 64
const PATIENCE_MS = 3_600_000

export async function fillEveryPool(options: ScaleOptions): Promise<ScaleRun> {
  const { nodes: nodeCount, volumesPerNode, capacityReservation, seed = 1 } = options
  const world = createWorld(seed)
  const cluster = await createCluster(world)
  const nodes = Array.from({ length: nodeCount }, (_, index) => `node-${index}`)
  const driver = createSimDriver(
    world,
    'driver',
    fakeSettings({ pools: nodes.map((node) => poolOf(node, volumesPerNode)) }),
  )
  const view = createSchedulingView(cluster)
  const client = cluster.direct()!
  const { name } = driver.settings

  await answerTo(world, prepare(), 'objects', PATIENCE_MS)
  let failedCreates = 0
  let scheduler: ReturnType<typeof runScheduler> | undefined
  cluster.add('controllers', runClaimControllers)
  cluster.add('storage', (env, way) => void runStorage(env, way, counted(driver.driverFor(env))))
  cluster.add('scheduler', (env, way) => {
    scheduler = runScheduler(env, way, { capacityReservation })
  })
  const reports = nodeCount * CLASSES.length
  await world.runUntil(() => view.capacities.size === reports, { withinMs: 600_000, waitingFor: 'capacity objects' })
  reportNowAndThen()

  const startMs = world.nowMs
  const pods = nodeCount * volumesPerNode
  const bound = () => [...view.pods.values()].filter(({ spec }) => spec?.nodeName).length
  await answerTo(world, createPods(pods), 'objects', PATIENCE_MS)
  let looked = -1
  let found = 0
  const isFull = () => {
    if (view.podChanges === looked) return false
    looked = view.podChanges
    found = bound()
    return found === pods
  }
  await world.runUntil(isFull, { withinMs: PATIENCE_MS, waitingFor: 'every pod to have a node' }).catch(() => {}) // how many have none is told by the numbers
  const virtualSeconds = (world.nowMs - startMs) / 1_000
  return { ...options, pods, bound: bound(), failedCreates, virtualSeconds, attempts: scheduler?.attempts ?? 0 }

  async function prepare(): Promise<void> {
    await createDriver(client, name)
    for (const className of CLASSES) await createClass(client, className, name)
    for (const node of nodes) await createNode(client, node, name)
  }

  function counted(csi: CsiDriver): CsiDriver {
    return createCsiDriver((method, request, call) =>
      callDriver(csi, method, request, call).catch((error: unknown) => {
        if (method.name === 'CreateVolume') failedCreates++
        throw error
      }),
    )
  }

  function reportNowAndThen(): void {
    driver.freezeCapacity()
    world.schedule(REPORTS_LATE_MS, reportNowAndThen)
  }

  async function createPods(count: number): Promise<void> {
    let next = 0
    const one = async () => {
      while (next < count) {
        const nth = next++
        const className = CLASSES[nth % CLASSES.length]!
        await createPod(client, `pod-${nth}`, { ephemeral: [{ sizeGi: 1, className }] })
      }
    }
    await Promise.all(Array.from({ length: CREATES_AT_ONCE }, one))
  }
}
