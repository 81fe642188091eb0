// A cluster for scheduling tests. Starts and stops a fake CSI driver with a pool per topology segment, the server, and further
// `stowage` commands; creates nodes (objects without an agent), classes, claims and pods; and waits for what the components
// write. One cluster exists at a time: its processes are module variables.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningFakeDriver, startFakeDriver } from './fake-driver.ts'
import { type RunningServer, startServer } from './server.ts'
import { type RunningStowage, startStowage } from './stowage.ts'

export const DRIVER_NAME = 'pools.example.com'
export const NO_SPACE = 'node(s) did not have enough free storage'
export const PODS = '/api/v1/namespaces/default/pods'
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
export const VOLUMES = '/api/v1/persistentvolumes'
export const NODES = '/api/v1/nodes'
export const CSI_NODES = '/apis/storage.k8s.io/v1/csinodes'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
export const CSI_DRIVERS = '/apis/storage.k8s.io/v1/csidrivers'
export const CAPACITIES = '/apis/storage.k8s.io/v1/csistoragecapacities'

export let driver: RunningFakeDriver
export let server: RunningServer
let dir: string
let processes: RunningStowage[] = []

export interface Pools {
  /** Topology segments as node labels, for example `host=n1`. */
  readonly segments: readonly string[]
  /** Size of the pool behind each segment. */
  readonly sizeGi: number
}

/** Starts the driver, and `stowage up` connected to it. */
export async function startUpWithDriver(pools: Pools): Promise<void> {
  await startDriver(pools)
  await startServerCommand('up', ['--driver-socket', driver.endpoint])
}

/** Starts the driver, and an API server that does not use it. Other components run in their own processes: see `startCommand`. */
export async function startServerWithDriver(pools: Pools): Promise<void> {
  await startDriver(pools)
  await startServerCommand('server')
}

/** Starts the server and waits until it has the CSIDriver. */
async function startServerCommand(command: 'up' | 'server', flags: readonly string[] = []): Promise<void> {
  server = await startServer({ dataDir: join(dir, 'data'), command, flags })
  if (command === 'server')
    return post(CSI_DRIVERS, { metadata: { name: DRIVER_NAME }, spec: { storageCapacity: true } })
  await pollUntil(async () => (await server.call('GET', `${CSI_DRIVERS}/${DRIVER_NAME}`)).status === 200)
  await remove(`${CLASSES}/${DRIVER_NAME}`) // the tests create their own classes, and expect no capacity of others
}

/** Starts the killed API server again at its address. */
export async function restartServer(): Promise<void> {
  const flags = ['--listen', new URL(server.url).host]
  server = await startServer({ dataDir: server.dataDir, command: 'server', flags })
}

/** Starts a `stowage` command that connects to the server. Default program: the one built from the current sources. */
export async function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program?: string,
): Promise<RunningStowage> {
  const startedCommand = await startStowage({
    args: [...args, '--kubeconfig', server.kubeconfig],
    env: { NAMESPACE: 'kube-system', ...env },
    ...(program ? { program } : {}),
  })
  processes.push(startedCommand)
  return startedCommand
}

async function startDriver({ segments, sizeGi }: Pools): Promise<void> {
  dir = await mkdtemp(join(tmpdir(), 'stowage-scheduling-'))
  const topology = segments.flatMap((segment) => ['--topology', segment])
  driver = await startFakeDriver({ flags: ['--name', DRIVER_NAME, '--capacity', `${sizeGi}Gi`, ...topology] })
}

/** Stops all processes and removes their files. Call after each test. */
export async function stopAll(): Promise<void> {
  for (const process of processes) await process.stop()
  processes = []
  await server?.stop()
  await driver?.remove()
  await rm(dir, { recursive: true, force: true })
}

export async function post(path: string, body: object): Promise<any> {
  const response = await server.call('POST', path, body)
  if (response.status >= 300) throw new Error(`POST ${path}: ${response.text}`)
  return response.json
}

export async function patch(path: string, body: object): Promise<void> {
  const response = await server.call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' })
  if (response.status >= 300) throw new Error(`PATCH ${path}: ${response.text}`)
}

export const get = async (path: string): Promise<any> => (await server.call('GET', path)).json
export const remove = (path: string) => server.call('DELETE', `${path}?gracePeriodSeconds=0`)
export const list = async (path: string): Promise<any[]> => (await get(path)).items

/** Polls until the result is truthy, and returns it. The test's timeout applies. */
export async function pollUntil<T>(poll: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const result = await poll()
    if (result) return result
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

export async function createNode(name: string, labels: Record<string, string>): Promise<void> {
  const status = { allocatable: { cpu: '8', memory: '32Gi', pods: '110' } }
  await post(NODES, { metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } }, status })
  const drivers = [{ name: DRIVER_NAME, nodeID: name, topologyKeys: Object.keys(labels) }]
  await post(CSI_NODES, { metadata: { name }, spec: { drivers } })
}

export const createClass = (name: string, fields: object = {}) =>
  post(CLASSES, {
    metadata: { name },
    provisioner: DRIVER_NAME,
    volumeBindingMode: 'WaitForFirstConsumer',
    ...fields,
  })

export const claimSpec = (sizeGi: number, storageClassName: string) => ({
  accessModes: ['ReadWriteOnce'],
  storageClassName,
  resources: { requests: { storage: `${sizeGi}Gi` } },
})

export const createClaim = (name: string, sizeGi: number, storageClassName: string) =>
  post(CLAIMS, { metadata: { name }, spec: claimSpec(sizeGi, storageClassName) })

export interface PodOptions {
  readonly claims?: readonly string[]
  readonly ephemeral?: Readonly<Record<string, object>>
  readonly nodeSelector?: Record<string, string>
  readonly nodeName?: string
}

export const createPod = (name: string, { claims = [], ephemeral = {}, ...specFields }: PodOptions = {}) =>
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
      ...specFields,
    },
  })

export const waitUntilScheduled = (pod: string): Promise<string> =>
  pollUntil(async () => (await get(`${PODS}/${pod}`)).spec?.nodeName)
const getSchedulingMessage = async (pod: string): Promise<string | undefined> =>
  (await get(`${PODS}/${pod}`)).status?.conditions?.find(
    ({ type, status }: { type: string; status: string }) => type === 'PodScheduled' && status === 'False',
  )?.message
export const waitForMessage = (pod: string, text: string): Promise<string> =>
  pollUntil(async () => {
    const currentMessage = await getSchedulingMessage(pod)
    return currentMessage?.includes(text) && currentMessage
  })
export const listDriverVolumes = async () => Object.values((await driver.control.inspect()).state.volumes)
export const listCalls = async (method: string) =>
  (await driver.control.inspect()).calls.filter((call) => call.method === method)

/** Returns `class segment: capacity` of every CSIStorageCapacity. */
const listCapacities = async (): Promise<string[]> =>
  (await list(CAPACITIES))
    .map(({ storageClassName, nodeTopology, capacity }) => {
      const segmentValues = Object.values(nodeTopology?.matchLabels ?? {}).join(' ')
      return `${storageClassName} ${segmentValues}: ${capacity}`
    })
    .sort()
export const waitForCapacities = (...expected: string[]) =>
  pollUntil(async () => JSON.stringify(await listCapacities()) === JSON.stringify(expected.sort()))
