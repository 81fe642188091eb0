// Measures pods with a volume each, from create to Running, on one node: server, driver and agent are separate
// processes.
//   loop        volumes with real devices and file systems; the limit is the same driver, called directly for as many volumes
//   directory   volumes that cost the driver almost nothing, which leaves the cost of Stowage; and the agent's memory
import { join } from 'node:path'
import type { Kind } from '../src/api/kind.ts'
import { persistentVolumeClaimKind as claimKind } from '../src/api/kinds/claim/claim.ts'
import { csiDriverKind } from '../src/api/kinds/csi-driver/csi-driver.ts'
import { podKind } from '../src/api/kinds/pod/pod.ts'
import { storageClassKind } from '../src/api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind as volumeKind } from '../src/api/kinds/volume/volume.ts'
import { loadOrCreatePki } from '../src/apiserver/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { httpClient, kubeconfigConnection } from '../src/client/index.ts'
import { type CsiDriver, connectDriver } from '../src/csi/index.ts'
import { DRIVER_NAME } from '../src/driver/index.ts'
import { probeHost } from '../src/host/index.ts'
import { measureTime, publishWithDriver } from './driver.ts'
import type { BurstJob, BurstResult } from './lib/burst-role.ts'
import { type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { NUMBER, type RequestText } from './lib/load-role.ts'
import { type Role, startRole } from './lib/role.ts'
import { residentMb, startLocalDriver, startNode, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'

const WARM_UP_PODS = 30
/** The first rounds take more CPU time, until the code of the server and the agent is compiled. */
const LOOP = { short: { pods: 70, rounds: 3, warmUpRounds: 3 }, long: { pods: 100, rounds: 5, warmUpRounds: 3 } }
/** Pods created at once. The last number is reported as a figure. */
const DIRECTORY_PODS = [40, 120, 360]
/** Number of volumes for the measurement of the agent's memory. */
const MEMORY_PODS = 500
/** Compared with the rate of the driver alone. */
const RATIO_MIN = 0.8
/** Memory of the agent with MEMORY_PODS volumes. */
const AGENT_MB_MAX = 90
const CLIENTS = 64
const LOOP_VOLUME_BYTES = 314_572_800
/** Small, because directories reserve space without using it. */
const DIRECTORY_VOLUME_BYTES = 1_048_576

/** 1,000 pods with a volume each on 10 nodes took 193 s. */
const PUBLISHED = {
  value: 1_000 / 193,
  of: 'hostpath driver on 10 nodes, csi-driver-host-path storage-capacity-tracking.md',
}

const CORE = '/api/v1/namespaces/default'

const CSI_DRIVER = {
  metadata: { name: DRIVER_NAME },
  spec: { attachRequired: false, podInfoOnMount: true },
}
const CLASS = {
  metadata: { name: 'local' },
  provisioner: DRIVER_NAME,
  volumeBindingMode: 'WaitForFirstConsumer',
} as const
const claimOf = (bytes: number) => ({
  metadata: { name: `claim-${NUMBER}` },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: CLASS.metadata.name,
    resources: { requests: { storage: String(bytes) } },
  },
})
const POD = {
  metadata: { name: `pod-${NUMBER}` },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${NUMBER}` } }],
  },
}

export const podsSuite: Suite = { parts: { loop: measureLoop, directory: measureDirectory } }

async function measureLoop(options: PartOptions): Promise<Figure[]> {
  const { canLoop, canMount, filesystems } = await probeHost({ poolDir: options.dir, clock: systemClock() })
  const missingAbility = [canLoop, canMount, filesystems.xfs].find((ability) => !ability.available)
  if (missingAbility && !missingAbility.available) {
    options.reportMissing('pods with loop devices, create to Running', missingAbility.message)
    return []
  }
  const bench = await openBench(options, 'loop')
  try {
    const { pods, rounds, warmUpRounds } = options.isLong ? LOOP.long : LOOP.short
    for (let round = 1; round <= warmUpRounds; round++) {
      options.progress(`warming up, round ${round} of ${warmUpRounds}`)
      await bench.runPods(pods)
      await bench.clear()
    }
    await bench.measureDriverAlone(pods)
    const [byPods, byDriver, p50Ms]: [number[], number[], number[]] = [[], [], []]
    // The rounds alternate, so that both run under the same load of the machine.
    for (let round = 1; round <= rounds; round++) {
      options.progress(`${pods} pods, ${pods} volumes by the driver alone; round ${round} of ${rounds}`)
      const burst = await bench.runPods(pods)
      await bench.clear()
      byPods.push(pods / burst.seconds)
      p50Ms.push(burst.p50Ms)
      byDriver.push(await bench.measureDriverAlone(pods))
    }
    return [
      {
        name: `${pods} pods, each with a volume, create to Running`,
        unit: '/s',
        value: medianOf(byPods),
        limit: { value: medianOf(byDriver), of: 'the driver alone, create to published' },
        target: { ratioMin: RATIO_MIN },
      },
      { name: `${pods} pods, each with a volume, p50`, unit: 'ms', value: medianOf(p50Ms) },
    ]
  } finally {
    await bench.close()
  }
}

async function measureDirectory(options: PartOptions): Promise<Figure[]> {
  const bench = await openBench(options, 'directory')
  try {
    options.progress('warming up')
    await bench.runPods(WARM_UP_PODS)
    const beforeMb = bench.agentMb()
    const maxPods = Math.max(...DIRECTORY_PODS)
    options.progress(`${MEMORY_PODS} pods`)
    await bench.runPods(MEMORY_PODS - WARM_UP_PODS)
    const afterMb = bench.agentMb()
    await bench.clear()
    const points: GrowthPoint[] = []
    for (const pods of DIRECTORY_PODS) {
      options.progress(`${pods} pods with volumes that are directories`)
      const burst = await bench.runPods(pods)
      points.push({ size: pods, ms: burst.seconds * 1_000 })
      await bench.clear()
    }
    return [
      {
        name: `${maxPods} pods with directories, create to Running`,
        unit: '/s',
        value: (maxPods * 1_000) / points.at(-1)!.ms,
        peer: PUBLISHED,
      },
      {
        name: `agent with ${MEMORY_PODS} volumes, resident`,
        unit: 'MB',
        value: afterMb,
        limit: { value: beforeMb, of: `the same agent with ${WARM_UP_PODS}` },
        target: { valueMax: AGENT_MB_MAX },
      },
      toTotalGrowthFigure('pods with directories', { of: 'pods', points }),
    ]
  } finally {
    await bench.close()
  }
}

interface Bench {
  /** Creates this many claims, then times as many pods that use them. */
  runPods(count: number): Promise<BurstResult>
  /** Returns the volumes per second that the driver alone publishes, with this many at once. */
  measureDriverAlone(count: number): Promise<number>
  /** Deletes pods and claims, and waits until the pods and the volumes are deleted. */
  clear(): Promise<void>
  agentMb(): number
  close(): Promise<void>
}

async function openBench({ dir, profileDir }: PartOptions, backend: 'loop' | 'directory'): Promise<Bench> {
  const clock = systemClock()
  const socket = join(dir, 'csi.sock')
  const dataDir = join(dir, 'data')
  const kubeconfig = join(dataDir, 'admin.kubeconfig')
  const driver = await startLocalDriver({ socket, pool: join(dir, 'pool'), backend, profileDir })
  const server = await startServer({ dataDir, profileDir, command: 'up', flags: ['--driver-socket', socket] })
  const client = httpClient({ connection: await kubeconfigConnection({ path: kubeconfig, clock }), clock })
  await client.create(csiDriverKind, CSI_DRIVER)
  await client.create(storageClassKind, CLASS)
  const maxPods = MEMORY_PODS + WARM_UP_PODS
  const agent = await startNode({ kubeconfig, rootDir: join(dir, 'node'), socket, maxPods, profileDir })
  const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock })
  const endpoint: Endpoint = { port: server.port, ca: pki.caCert, ...pki.admin }
  const bursts: Role<BurstJob, BurstResult> = startRole('burst')
  const csi = connectDriver({ address: socket, clock, log: silentLog, timeoutMs: 120_000 })
  const claim = claimOf(backend === 'loop' ? LOOP_VOLUME_BYTES : DIRECTORY_VOLUME_BYTES)
  let usedCount = 0

  const burst = (resource: string, count: number, body: object, until: string) => {
    const path = `${CORE}/${resource}`
    const request: RequestText = { method: 'POST', path, body: JSON.stringify(body) }
    const watch: RequestText = { method: 'GET', path: `${path}?watch=1` }
    return bursts.run({ endpoint, clients: CLIENTS, count, after: usedCount, request, watch, until })
  }
  async function clear(): Promise<void> {
    const inNamespace = { namespace: 'default' }
    for (const kind of [podKind, claimKind] as readonly Kind[]) {
      const { items } = await client.list(kind, inNamespace)
      await Promise.all(items.map(({ metadata: { name } }) => client.delete(kind, { ...inNamespace, name })))
    }
    while ((await client.list(volumeKind)).items.length > 0) await clock.sleep(100)
    while ((await client.list(podKind, inNamespace)).items.length > 0) await clock.sleep(100)
  }
  return {
    async runPods(count) {
      await burst('persistentvolumeclaims', count, claim, '"phase":"Pending"')
      const result = await burst('pods', count, POD, '"phase":"Running"')
      usedCount += count
      return result
    },
    measureDriverAlone: (count) => measureDriverRate(csi, dir, count),
    clear,
    agentMb: () => residentMb(agent.pid),
    async close() {
      await clear() // devices and mounts outlive the processes
      csi.close()
      client.close()
      bursts.stop()
      await agent.stop()
      await server.stop()
      await driver.stop()
    },
  }
}

let volumesCreated = 0

async function measureDriverRate(csi: CsiDriver, dir: string, count: number): Promise<number> {
  const requests = Array.from({ length: count }, () => ({
    dir,
    name: `alone-${++volumesCreated}`,
    fsType: 'xfs' as const,
    bytes: LOOP_VOLUME_BYTES,
  }))
  const { result, ms } = await measureTime(() =>
    Promise.all(requests.map((request) => publishWithDriver(csi, request))),
  )
  await Promise.all(result.map((volume) => volume.remove()))
  return (count * 1_000) / ms
}
