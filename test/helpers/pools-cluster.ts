// For scheduling tests from outside: a server, a fake CSI driver with a pool per topology segment, further processes, and
// builders for objects. Nodes are plain objects, as an administrator could create them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningFakeDriver, startFakeDriver } from './fake-driver.ts'
import { type RunningServer, startServer } from './server.ts'
import { type RunningStowage, startStowage } from './stowage.ts'

export const DRIVER = 'pools.example.com'
export const NO_SPACE = 'node(s) did not have enough free storage'
export const PODS = '/api/v1/namespaces/default/pods'
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
export const VOLUMES = '/api/v1/persistentvolumes'
export const NODES = '/api/v1/nodes'
export const CSI_NODES = '/apis/storage.k8s.io/v1/csinodes'
export const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
export const DRIVERS = '/apis/storage.k8s.io/v1/csidrivers'
export const CAPACITIES = '/apis/storage.k8s.io/v1/csistoragecapacities'

export let driver: RunningFakeDriver
export let server: RunningServer
let dir: string
let others: RunningStowage[] = []

export interface Pools {
  /** As labels of nodes: `host=n1`. */
  readonly places: readonly string[]
  /** Size of the pool behind each segment. */
  readonly sizeGi: number
}

/** `stowage up`, connected to the driver. */
export async function start(pools: Pools): Promise<void> {
  await startDriver(pools)
  await startAs('up', ['--driver-socket', driver.endpoint])
}

/** The API server alone; everything else runs in its own process, see `run`. */
export async function startApart(pools: Pools): Promise<void> {
  await startDriver(pools)
  await startAs('server')
}

async function startAs(command: 'up' | 'server', flags: readonly string[] = []): Promise<void> {
  server = await startServer({ dataDir: join(dir, 'data'), command, flags })
  await post(DRIVERS, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
}

/** Restarts the killed API server at its address. */
export async function startAgain(): Promise<void> {
  const flags = ['--listen', new URL(server.url).host]
  server = await startServer({ dataDir: server.dataDir, command: 'server', flags })
}

/** `stowage …` against the server. */
export async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningStowage> {
  const running = await startStowage({
    args: [...args, '--kubeconfig', server.kubeconfig],
    env: { NAMESPACE: 'kube-system', ...env },
  })
  others.push(running)
  return running
}

async function startDriver({ places, sizeGi }: Pools): Promise<void> {
  dir = await mkdtemp(join(tmpdir(), 'stowage-scheduling-'))
  const topology = places.flatMap((place) => ['--topology', place])
  driver = await startFakeDriver({ flags: ['--name', DRIVER, '--capacity', `${sizeGi}Gi`, ...topology] })
}

/** After each test. */
export async function stopAll(): Promise<void> {
  for (const one of others) await one.stop()
  others = []
  await server?.stop()
  await driver?.remove()
  await rm(dir, { recursive: true, force: true })
}

export async function post(path: string, body: object): Promise<any> {
  const reply = await server.call('POST', path, body)
  if (reply.status >= 300) throw new Error(`POST ${path}: ${reply.text}`)
  return reply.json
}

export async function patch(path: string, body: object): Promise<void> {
  const reply = await server.call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' })
  if (reply.status >= 300) throw new Error(`PATCH ${path}: ${reply.text}`)
}

export const get = async (path: string): Promise<any> => (await server.call('GET', path)).json
export const remove = (path: string) => server.call('DELETE', `${path}?gracePeriodSeconds=0`)
export const list = async (path: string): Promise<any[]> => (await get(path)).items

/** Polls until the test's own timeout. */
export async function until<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

export async function aNode(name: string, labels: Record<string, string>): Promise<void> {
  const status = { allocatable: { cpu: '8', memory: '32Gi', pods: '110' } }
  await post(NODES, { metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } }, status })
  const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: Object.keys(labels) }]
  await post(CSI_NODES, { metadata: { name }, spec: { drivers } })
}

export const aClass = (name: string, parts: object = {}) =>
  post(CLASSES, {
    metadata: { name },
    provisioner: DRIVER,
    volumeBindingMode: 'WaitForFirstConsumer',
    ...parts,
  })

export const spec = (sizeGi: number, storageClassName: string) => ({
  accessModes: ['ReadWriteOnce'],
  storageClassName,
  resources: { requests: { storage: `${sizeGi}Gi` } },
})

export const aClaim = (name: string, sizeGi: number, storageClassName: string) =>
  post(CLAIMS, { metadata: { name }, spec: spec(sizeGi, storageClassName) })

export interface PodParts {
  readonly claims?: readonly string[]
  readonly ephemeral?: Readonly<Record<string, object>>
  readonly nodeSelector?: Record<string, string>
  readonly nodeName?: string
}

export const aPod = (name: string, { claims = [], ephemeral = {}, ...more }: PodParts = {}) =>
  post(PODS, {
    metadata: { name },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      volumes: [
        ...claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
        ...Object.entries(ephemeral).map(([volume, template]) => ({
          name: volume,
          ephemeral: { volumeClaimTemplate: { spec: template } },
        })),
      ],
      ...more,
    },
  })

export const placed = (pod: string): Promise<string> => until(async () => (await get(`${PODS}/${pod}`)).spec?.nodeName)
export const message = async (pod: string): Promise<string | undefined> =>
  (await get(`${PODS}/${pod}`)).status?.conditions?.find(
    ({ type, status }: { type: string; status: string }) => type === 'PodScheduled' && status === 'False',
  )?.message
export const says = (pod: string, text: string): Promise<string> =>
  until(async () => {
    const said = await message(pod)
    return said?.includes(text) && said
  })
export const held = async () => Object.values((await driver.control.inspect()).state.volumes)
export const calls = async (method: string) =>
  (await driver.control.inspect()).calls.filter((call) => call.method === method)

/** `class segment: capacity` of every object. */
export const reports = async (): Promise<string[]> =>
  (await list(CAPACITIES))
    .map(({ storageClassName, nodeTopology, capacity }) => {
      const places = Object.values(nodeTopology?.matchLabels ?? {}).join(' ')
      return `${storageClassName} ${places}: ${capacity}`
    })
    .sort()
export const reported = (...wanted: string[]) =>
  until(async () => JSON.stringify(await reports()) === JSON.stringify(wanted.sort()))
