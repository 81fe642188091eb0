// Pods go where their volumes fit, as a user sees it: `stowage up`, HTTP, and a CSI driver in a process of its own. The
// three examples of the design document, what can go wrong between choosing a node and having the volume there, and an
// API server that is away for ten seconds. Nodes are plain objects, as an administrator could write them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type RunningStowage, startStowage } from './helpers/stowage.ts'

const DRIVER = 'pools.example.com'
const NO_SPACE = 'node(s) did not have enough free storage'
const PODS = '/api/v1/namespaces/default/pods'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const NODES = '/api/v1/nodes'
const CSI_NODES = '/apis/storage.k8s.io/v1/csinodes'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const DRIVERS = '/apis/storage.k8s.io/v1/csidrivers'
const CAPACITIES = '/apis/storage.k8s.io/v1/csistoragecapacities'

let dir: string
let driver: RunningFakeDriver
let server: RunningServer
let others: RunningStowage[] = []

/** A pool of this size behind each of the places; `up` speaks to the driver. */
async function start({ places, sizeGi }: { places: readonly string[]; sizeGi: number }): Promise<void> {
  await startDriver({ places, sizeGi })
  const flags = ['--driver-socket', driver.endpoint]
  server = await startServer({ dataDir: join(dir, 'data'), flags })
  await post(DRIVERS, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
}

async function startDriver({ places, sizeGi }: { places: readonly string[]; sizeGi: number }): Promise<void> {
  dir = await mkdtemp(join(tmpdir(), 'stowage-scheduling-'))
  const topology = places.flatMap((place) => ['--topology', place])
  driver = await startFakeDriver({ flags: ['--name', DRIVER, '--capacity', `${sizeGi}Gi`, ...topology] })
}

afterEach(async () => {
  for (const one of others) await one.stop()
  others = []
  await server?.stop()
  await driver?.remove()
  await rm(dir, { recursive: true, force: true })
})

async function post(path: string, body: object): Promise<any> {
  const reply = await server.call('POST', path, body)
  if (reply.status >= 300) throw new Error(`POST ${path}: ${reply.text}`)
  return reply.json
}

async function patch(path: string, body: object): Promise<void> {
  const reply = await server.call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' })
  if (reply.status >= 300) throw new Error(`PATCH ${path}: ${reply.text}`)
}

const get = async (path: string): Promise<any> => (await server.call('GET', path)).json
const remove = (path: string) => server.call('DELETE', `${path}?gracePeriodSeconds=0`)
const list = async (path: string): Promise<any[]> => (await get(path)).items

/** Asked again until the test's own limit. */
async function until<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

async function aNode(name: string, labels: Record<string, string>): Promise<void> {
  const status = { allocatable: { cpu: '8', memory: '32Gi', pods: '110' } }
  await post(NODES, { metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } }, status })
  const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: Object.keys(labels) }]
  await post(CSI_NODES, { metadata: { name }, spec: { drivers } })
}

const aClass = (name: string, parts: object = {}) =>
  post(CLASSES, {
    metadata: { name },
    provisioner: DRIVER,
    volumeBindingMode: 'WaitForFirstConsumer',
    ...parts,
  })

const spec = (sizeGi: number, storageClassName: string) => ({
  accessModes: ['ReadWriteOnce'],
  storageClassName,
  resources: { requests: { storage: `${sizeGi}Gi` } },
})

const aClaim = (name: string, sizeGi: number, storageClassName: string) =>
  post(CLAIMS, { metadata: { name }, spec: spec(sizeGi, storageClassName) })

interface PodParts {
  readonly claims?: readonly string[]
  readonly ephemeral?: Readonly<Record<string, object>>
  readonly nodeSelector?: Record<string, string>
}

const aPod = (name: string, { claims = [], ephemeral = {}, ...more }: PodParts = {}) =>
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

const placed = (pod: string): Promise<string> => until(async () => (await get(`${PODS}/${pod}`)).spec?.nodeName)
const message = async (pod: string): Promise<string | undefined> =>
  (await get(`${PODS}/${pod}`)).status?.conditions?.find(
    ({ type, status }: { type: string; status: string }) => type === 'PodScheduled' && status === 'False',
  )?.message
const says = (pod: string, text: string): Promise<string> =>
  until(async () => {
    const said = await message(pod)
    return said?.includes(text) && said
  })
const held = async () => Object.values((await driver.control.look()).state.volumes)
const calls = async (method: string) => (await driver.control.look()).calls.filter((call) => call.method === method)

/** `class place: capacity`, of every object. */
const reports = async (): Promise<string[]> =>
  (await list(CAPACITIES))
    .map(({ storageClassName, nodeTopology, capacity }) => {
      const places = Object.values(nodeTopology?.matchLabels ?? {}).join(' ')
      return `${storageClassName} ${places}: ${capacity}`
    })
    .sort()
const reported = (...wanted: string[]) =>
  until(async () => JSON.stringify(await reports()) === JSON.stringify(wanted.sort()))

describe('the examples of the design document', () => {
  it('CAP-4 CAP-11 CAP-12 CAP-15 local storage: each node its own, and a pod waits until one has room', async () => {
    await start({ places: ['host=n1', 'host=n2'], sizeGi: 10 })
    await aClass('local')
    for (const name of ['n1', 'n2']) await aNode(name, { host: name })
    await reported('local n1: 10Gi', 'local n2: 10Gi')
    const scratch = { scratch: spec(7, 'local') }
    await aPod('a', { ephemeral: scratch })
    await aPod('b', { ephemeral: scratch })
    const nodes = [await placed('a'), await placed('b')]
    expect(nodes.sort()).toEqual(['n1', 'n2'])
    await reported('local n1: 3Gi', 'local n2: 3Gi')
    await aPod('c', { ephemeral: scratch })
    expect(await says('c', NO_SPACE)).toBe(
      `0/2 nodes are available: 2 ${NO_SPACE}. A volume of 7Gi of class "local" is asked for, and at most 3Gi is free ` +
        'on any of the nodes.',
    )
    await remove(`${PODS}/a`)
    await placed('c')
    expect(await held()).toHaveLength(2)
  })

  it('CAP-6 CAP-15 classes that differ in cost: what the same pool offers depends on the class', async () => {
    await start({ places: ['host=n1'], sizeGi: 10 })
    await aClass('striped')
    await aClass('mirrored', { parameters: { copies: '2' } })
    await aNode('n1', { host: 'n1' })
    await reported('mirrored n1: 5Gi', 'striped n1: 10Gi')
    await aPod('big', { ephemeral: { scratch: spec(6, 'mirrored') } })
    await says('big', `1 ${NO_SPACE}`)
    await aPod('safe', { ephemeral: { scratch: spec(4, 'mirrored') } })
    await placed('safe')
    await reported('mirrored n1: 1Gi', 'striped n1: 2Gi')
    await aPod('fast', { ephemeral: { scratch: spec(2, 'striped') } })
    await placed('fast')
    await reported('mirrored n1: 0', 'striped n1: 0')
    expect((await calls('CreateVolume')).every(({ outcome }) => outcome === 'OK')).toBe(true)
  })

  it('CAP-4 CAP-15 network attached: one object per region and class, shared by the nodes of the region', async () => {
    await start({ places: ['region=east', 'region=west'], sizeGi: 20 })
    await aClass('net')
    for (const [name, region] of Object.entries({ e1: 'east', e2: 'east', w1: 'west' })) await aNode(name, { region })
    await reported('net east: 20Gi', 'net west: 20Gi')
    await aClaim('east-data', 15, 'net')
    await aPod('e', { claims: ['east-data'], nodeSelector: { region: 'east' } })
    expect(await placed('e')).toMatch(/^e/)
    await reported('net east: 5Gi', 'net west: 20Gi')
    await aPod('w', { ephemeral: { scratch: spec(15, 'net') } })
    expect(await placed('w')).toBe('w1')
    await reported('net east: 5Gi', 'net west: 5Gi')
    // Whoever uses the claim later goes to its region, on any node there.
    await aPod('later', { claims: ['east-data'] })
    expect(await placed('later')).toMatch(/^e/)
  })
})

describe('between choosing a node and having the volume', () => {
  const twoNodes = async () => {
    await start({ places: ['host=n1', 'host=n2'], sizeGi: 10 })
    await aClass('local')
    for (const name of ['n1', 'n2']) await aNode(name, { host: name })
    await reported('local n1: 10Gi', 'local n2: 10Gi')
  }

  it('CAP-15 PLUS-3 several volumes of one pod are judged together', async () => {
    await twoNodes()
    await aPod('first', { ephemeral: { a: spec(3, 'local') } })
    const taken = await placed('first')
    await aPod('two', { ephemeral: { a: spec(5, 'local'), b: spec(5, 'local') } })
    expect(await placed('two')).not.toBe(taken)
    await aPod('three', { ephemeral: { a: spec(4, 'local'), b: spec(4, 'local') } })
    await says('three', `2 ${NO_SPACE}`)
    expect((await calls('CreateVolume')).every(({ outcome }) => outcome === 'OK')).toBe(true)
  })

  it('CAP-16 a pod that is trapped says where it is held, and by what', async () => {
    await twoNodes()
    await aClaim('data', 4, 'local')
    await aPod('first', { claims: ['data'] })
    const where = await placed('first')
    await aPod('neighbour', { ephemeral: { a: spec(5, 'local') }, nodeSelector: { host: where } })
    await placed('neighbour')
    await remove(`${PODS}/first`)
    await aClaim('log', 8, 'local')
    await aPod('second', { claims: ['data', 'log'] })
    const said = await says('second', 'already has its volume')
    expect(said).toContain(`Claim "data" already has its volume on "${where}", where no volume can be had for "log"`)
    expect(said).toContain('0/2 nodes are available')
    await remove(`${PODS}/neighbour`)
    await until(async () => (await held()).length === 1)
    await remove(`${CLAIMS}/log`)
    await aClaim('log', 5, 'local')
    expect(await placed('second')).toBe(where)
  })

  it('CAP-13 RESOURCE_EXHAUSTED sends the pod elsewhere, and nothing is left behind', async () => {
    await twoNodes()
    const full = { do: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'full after all' } as const
    await driver.control.setRules([{ method: 'CreateVolume', times: 1, effect: full }])
    await aPod('a', { ephemeral: { scratch: spec(5, 'local') } })
    const node = await placed('a')
    const [refused, made] = await calls('CreateVolume')
    expect([refused?.outcome, made?.outcome]).toEqual(['RESOURCE_EXHAUSTED', 'OK'])
    const preferred = (call: any) => Object.values(call.request.accessibilityRequirements.preferred[0].segments)[0]
    expect(preferred(made)).toBe(node)
    expect(preferred(refused)).not.toBe(node)
    await remove(`${PODS}/a`)
    await until(async () => (await held()).length === 0 && (await list(VOLUMES)).length === 0)
  })

  it('CAP-13 CAP-14 a pod that is deleted while its volume is made leaves nothing', async () => {
    await twoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await aPod('a', { ephemeral: { scratch: spec(5, 'local') } })
    await until(async () => (await driver.control.look()).hanging > 0)
    await remove(`${PODS}/a`)
    await driver.control.setRules([])
    await driver.control.release()
    await until(async () => (await list(CLAIMS)).length === 0 && (await held()).length === 0)
    await until(async () => (await list(VOLUMES)).length === 0)
    await reported('local n1: 10Gi', 'local n2: 10Gi')
  })

  it('CAP-13 a node that is deleted while a volume is made there: the pod goes to another', async () => {
    await twoNodes()
    await driver.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    await aPod('a', { ephemeral: { scratch: spec(5, 'local') } })
    await until(async () => (await driver.control.look()).hanging > 0)
    const claim = await get(`${CLAIMS}/a-scratch`)
    const lost = claim.metadata.annotations['volume.kubernetes.io/selected-node']
    await remove(`${NODES}/${lost}`)
    await remove(`${CSI_NODES}/${lost}`)
    await driver.control.setRules([])
    await driver.control.release()
    const node = await placed('a')
    expect(node).not.toBe(lost)
    await until(async () => (await held()).length === 1)
    expect((await held())[0]?.segments).toEqual({ host: node })
    await reported(`local ${node}: 5Gi`)
  })
})

describe('what people write that makes no sense', () => {
  it('CAP-7 CAP-11 CAP-12 the pod says what is wrong, and others are placed as ever', async () => {
    await start({ places: ['host=n1'], sizeGi: 10 })
    await aClass('local')
    await aNode('n1', { host: 'n1' })
    await aNode('n2', { host: 'elsewhere' }) // the driver knows of no storage there
    await reported('local n1: 10Gi')
    const namespaced = '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities'
    const byHand = (name: string, parts: object) =>
      server.call('POST', namespaced, { metadata: { name }, storageClassName: 'local', ...parts })
    const nowhere = { nodeTopology: { matchLabels: { host: 'elsewhere' } } }
    expect((await byHand('absurd', { ...nowhere, capacity: '900E' })).status).toBe(201)
    expect((await byHand('no-topology', { capacity: '1Ti' })).status).toBe(201)
    expect((await byHand('of-no-class', { ...nowhere, storageClassName: 'gone', capacity: '1Ti' })).status).toBe(201)
    expect((await byHand('conflicting', { nodeTopology: { matchLabels: { host: 'n1' } }, capacity: '1' })).status).toBe(
      201,
    )
    expect((await byHand('negative', { ...nowhere, capacity: '-1Gi' })).status).toBe(422)
    expect((await byHand('no-number', { ...nowhere, capacity: 'much' })).status).toBe(400)

    await aPod('no-claim', { claims: ['missing'] })
    await aClaim('classless', 1, 'typo')
    await aPod('no-class', { claims: ['classless'] })
    await aPod('too-big', { ephemeral: { scratch: spec(100, 'local') } })
    await aPod('fine', { ephemeral: { scratch: spec(5, 'local') } })
    expect(await placed('fine')).toBe('n1')
    expect(await says('no-claim', 'missing')).toBe(
      '0/2 nodes are available: persistentvolumeclaim "missing" not found.',
    )
    expect(await says('no-class', 'typo')).toContain(
      'claim "classless" names the storage class "typo", which does not exist',
    )
    // Believed where it is all there is: the driver says no, and the pod says so.
    await until(async () => (await calls('CreateVolume')).some(({ outcome }) => outcome === 'RESOURCE_EXHAUSTED'))
    await remove(`${namespaced}/absurd`)
    await says('too-big', NO_SPACE)
    const names = (await list(CAPACITIES)).map(({ metadata }) => metadata.name)
    expect(names).toEqual(expect.arrayContaining(['no-topology', 'of-no-class', 'conflicting']))
    await aClaim('missing', 1, 'local')
    expect(await placed('no-claim')).toBe('n1')
  })

  it('CAP-2 CAP-11 a driver that has not opted in is not checked', async () => {
    await start({ places: ['host=n1'], sizeGi: 10 })
    await patch(`${DRIVERS}/${DRIVER}`, { spec: { storageCapacity: false } })
    await aClass('local')
    await aNode('n1', { host: 'n1' })
    await aPod('a', { ephemeral: { scratch: spec(100, 'local') } })
    await until(async () => (await calls('CreateVolume')).some(({ outcome }) => outcome === 'RESOURCE_EXHAUSTED'))
    await patch(`${DRIVERS}/${DRIVER}`, { spec: { storageCapacity: true } })
    await says('a', NO_SPACE)
  })
})

describe('every part in a process of its own', () => {
  it('CAP-17 CAP-20 the API server is away for ten seconds: all resume by themselves, and no object is made anew', async () => {
    const hosts = ['n1', 'n2', 'n3']
    await startDriver({ places: hosts.map((name) => `host=${name}`), sizeGi: 20 })
    const dataDir = join(dir, 'data')
    server = await startServer({ dataDir, command: 'server' })
    const { kubeconfig } = server
    const listen = ['--listen', new URL(server.url).host]
    const run = async (...args: string[]) =>
      void others.push(
        await startStowage({ args: [...args, '--kubeconfig', kubeconfig], env: { NAMESPACE: 'kube-system' } }),
      )
    await run('controllers', '--no-leader-election')
    await run('scheduler', '--no-leader-election')
    await run(
      ...['provisioner', '--csi-address', driver.endpoint, '--kube-api-qps', '-1', '--strict-topology', 'true'],
      ...['--enable-capacity', 'central', '--capacity-ownerref-level', '-1', '--kube-api-capacity-qps', '-1'],
    )
    await post(DRIVERS, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
    await aClass('local')
    for (const name of hosts) await aNode(name, { host: name })
    await reported(...hosts.map((name) => `local ${name}: 20Gi`))
    const uids = async () => (await list(CAPACITIES)).map(({ metadata }) => metadata.uid).sort()
    const before = await uids()

    const pods = Array.from({ length: 60 }, (_, index) => `p${index}`)
    for (const name of pods.slice(0, 40)) await aPod(name, { ephemeral: { scratch: spec(1, 'local') } })
    await server.kill()
    await new Promise((resolve) => setTimeout(resolve, 10_000)) // the outage itself
    server = await startServer({ dataDir, command: 'server', flags: listen })
    for (const name of pods.slice(40)) await aPod(name, { ephemeral: { scratch: spec(1, 'local') } })
    for (const name of pods) await placed(name)
    expect(await held()).toHaveLength(pods.length)
    await reported(...hosts.map((name) => `local ${name}: 0`))
    expect(await uids()).toEqual(before)
    expect((await driver.control.look()).overlaps).toEqual([])
  })
})
