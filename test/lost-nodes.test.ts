// Tests the loss and the return of nodes with real processes: drivers, agents and sidecars of three nodes, mounts, loop devices
// and pods that write, while claims are provisioned on the other nodes.
//   LOST_NODES=200 npx vitest run test/lost-nodes.test.ts
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { quarantineOf } from '../src/api/kinds/node/fencing.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { seededRandom } from './helpers/random.ts'
import { runStowage } from './helpers/run-stowage.ts'
import {
  findInterleavedWrites,
  findLeftovers,
  findTwiceWritable,
  listObjects,
  nodeOfCapacity,
} from './lost-nodes/checks.ts'
import { LOCAL_DRIVER, type LostNodesCluster, NODES, startLostNodesCluster } from './lost-nodes/cluster.ts'
import { type ProvisioningLoad, startLoad } from './lost-nodes/load.ts'
import { SHARED_DRIVER } from './lost-nodes/shared-driver.ts'

/** The ways in which the test loses a node. */
const LOSSES = ['crashed with its mounts', 'cut off, then powered off', 'cut off for a while', 'powered off'] as const
type Loss = (typeof LOSSES)[number]

const DEFAULT_LOSSES = 2
const lossCount = Number(process.env.LOST_NODES ?? DEFAULT_LOSSES)
const SET_SIZE = 3
const POLL_INTERVAL_MS = 100
const POLLS_MAX = 1_200 // after this many, a wait has failed
/** Claims that each of the other nodes must provision before the loss, and again while the node is lost. */
const CLAIMS_PER_TURN = lossCount > DEFAULT_LOSSES ? 8 : 2
const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])

describe.skipIf(skipMessage)(`lost nodes${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let hostLeftovers: HostLeftovers
  let cluster: LostNodesCluster
  let load: ProvisioningLoad

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-lost-nodes-')))
    hostLeftovers = await findLeftoversBelow(dir)
    cluster = await startLostNodesCluster(dir)
    await post('/apis/storage.k8s.io/v1/csidrivers', {
      metadata: { name: LOCAL_DRIVER },
      spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true },
    })
    await post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'on-node' },
      provisioner: LOCAL_DRIVER,
      parameters: { provisioning: 'thin', overcommit: '20' },
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    await post('/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: 'network' }, provisioner: SHARED_DRIVER })
    for (const [name, className] of [
      ['shared', 'network'],
      ['local', 'on-node'],
    ] as const)
      await post('/apis/apps/v1/namespaces/default/statefulsets', statefulSetOf(name, className))
    load = startLoad(cluster.server, 'on-node')
  }, 300_000)
  afterAll(async () => {
    await cluster?.stop()
    await hostLeftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  }, 300_000)

  async function post(path: string, body: object): Promise<void> {
    const { status, text } = await cluster.server.call('POST', path, body)
    expect(status, `POST ${path}: ${text}`).toBe(201)
  }

  /** Each pod appends its uid to a file of its volume, several times a second. */
  const statefulSetOf = (name: string, storageClassName: string) => ({
    metadata: { name },
    spec: {
      replicas: SET_SIZE,
      podManagementPolicy: 'Parallel',
      serviceName: name,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 1,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: { matchLabels: { app: name } },
            },
          ],
          containers: [
            {
              name: 'main',
              image: 'none',
              command: ['sh', '-c', 'while echo $POD_UID >> /data/log; do sleep 0.4; done'],
              env: [
                { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
                { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
                { name: 'NODE_DIR', value: `${dir}/$(NODE_NAME)` },
              ],
              volumeMounts: [{ name: 'data', mountPath: '/data' }],
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '300Mi' } } },
        },
      ],
    },
  })

  const violations: string[] = []
  /** Waits for a condition, and checks during the wait that no volume is writable on two nodes. */
  async function waitUntil(condition: () => Promise<boolean>, description: string): Promise<void> {
    for (let polls = 0; !(await condition()); polls++) {
      violations.push(...(await findTwiceWritable(cluster)))
      expect(violations).toEqual([])
      expect(load.problems).toEqual([])
      if (polls === POLLS_MAX) throw new Error(`timed out waiting until ${description}\n${await describeCluster()}`)
      await pause(POLL_INTERVAL_MS)
    }
  }
  async function describeCluster(): Promise<string> {
    const pods = (await listObjects(cluster.server, 'pods')).map(
      ({ metadata, spec, status }) =>
        `${metadata.name} ${status?.phase} on ${spec.nodeName} ${metadata.deletionTimestamp ?? ''}`,
    )
    const nodes = (await listObjects(cluster.server, 'nodes')).map(({ metadata, spec, status }) =>
      JSON.stringify({
        name: metadata.name,
        taints: spec.taints,
        conditions: status.conditions,
        inUse: status.volumesInUse,
      }),
    )
    const claims = (await listObjects(cluster.server, 'claims')).map(({ metadata, spec, status }) =>
      JSON.stringify({
        name: metadata.name,
        annotations: metadata.annotations,
        finalizers: metadata.finalizers,
        volume: spec.volumeName,
        status,
      }),
    )
    return [...claims, ...pods, ...nodes, cluster.logs()].join('\n')
  }

  const getNode = async (name: string) => (await cluster.server.call('GET', `/api/v1/nodes/${name}`)).json
  const hasCondition = async (node: string, type: string) =>
    (await getNode(node)).status?.conditions?.some(
      (condition: any) => condition.type === type && condition.status === 'True',
    ) ?? false
  const podsOf = async (set: string) =>
    (await listObjects(cluster.server, 'pods')).filter(({ metadata }) => metadata.labels?.app === set)
  const isRunning = ({ status, metadata }: any) => status?.phase === 'Running' && !metadata.deletionTimestamp
  const areAllRunning = async (set: string) => {
    const pods = await podsOf(set)
    return pods.length === SET_SIZE && pods.every(isRunning)
  }
  /** Waits until each of these nodes has provisioned some more claims. Returns their total number per second. */
  async function runTurn(nodes: readonly string[]): Promise<number> {
    const countClaims = () => nodes.map((node) => load.counts.get(node)!)
    const startCounts = countClaims()
    const startMs = performance.now()
    const provisioned = () => countClaims().map((count, index) => count - startCounts[index]!)
    await waitUntil(
      async () => provisioned().every((count) => count >= CLAIMS_PER_TURN),
      `claims are provisioned on ${nodes.join(' and ')}`,
    )
    return provisioned().reduce((sum, count) => sum + count, 0) / ((performance.now() - startMs) / 1_000)
  }

  /** Returns the provisioning rate of the other nodes while the node is lost, as a share of the rate before the loss. */
  async function loseAndReturn(node: string, loss: Loss): Promise<number> {
    const otherNodes = NODES.filter((name) => name !== node)
    const { server } = cluster
    for (const name of otherNodes) load.resume(name)
    const rateBefore = await runTurn(otherNodes)
    load.resume(node) // a claim may be in progress on the node when it is lost

    const pods = (await listObjects(server, 'pods')).filter(({ spec }) => spec.nodeName === node)
    const uids = pods.map(({ metadata }) => metadata.uid)
    if (loss === 'powered off') await cluster.powerOff(node)
    else if (loss === 'crashed with its mounts') await cluster.crash(node)
    else cluster.cutOff(node)
    load.abandon(node)
    await waitUntil(() => hasCondition(node, 'Unreachable'), `${node} is unreachable`)

    // The node may still write: its volumes stay attached and its pods get no successors.
    const attachments = await listObjects(server, 'attachments')
    const sharedPods = pods.filter(({ metadata }) => metadata.labels.app === 'shared')
    expect(attachments.filter(({ spec }) => spec.nodeName === node)).toHaveLength(sharedPods.length)
    const uidsNow = (await listObjects(server, 'pods')).map(({ metadata }) => metadata.uid)
    expect(uidsNow).toEqual(expect.arrayContaining(uids))
    if (loss === 'cut off for a while') {
      const rateDuring = await runTurn(otherNodes)
      cluster.reconnect(node)
      await waitUntil(async () => !(await hasCondition(node, 'Unreachable')), `${node} is back`)
      expect((await listObjects(server, 'pods')).map(({ metadata }) => metadata.uid)).toEqual(
        expect.arrayContaining(uids),
      )
      return rateDuring / rateBefore
    }
    if (loss === 'cut off, then powered off') await cluster.powerOff(node)
    const { code, stderr } = await runStowage('node', 'fence', node, '--confirm-off', '--kubeconfig', server.kubeconfig)
    expect(code, stderr).toBe(0)
    await waitUntil(() => hasCondition(node, 'Cleaned'), `${node} is cleaned`)
    expect((await listObjects(server, 'attachments')).filter(({ spec }) => spec.nodeName === node)).toEqual([])
    expect((await listObjects(server, 'capacities')).map(nodeOfCapacity)).not.toContain(node)
    expect((await listObjects(server, 'leases')).map(({ metadata }) => metadata.name)).not.toContain(node)
    await waitUntil(() => areAllRunning('shared'), `the pods with shared volumes run on ${otherNodes.join(' and ')}`)
    const rateDuring = await runTurn(otherNodes)
    // The volumes of local pods exist on the lost node only.
    const localPods = pods
      .filter(({ metadata }) => metadata.labels.app === 'local')
      .map(({ metadata }) => metadata.name)
    for (const pod of await podsOf('local')) {
      if (localPods.includes(pod.metadata.name)) expect(pod.spec.nodeName, pod.metadata.name).toBeUndefined()
    }
    await cluster.startNode(node)
    await waitUntil(
      async () => quarantineOf(await getNode(node)) === undefined && !(await hasCondition(node, 'Quarantined')),
      `${node} has returned`,
    )
    return rateDuring / rateBefore
  }

  it(
    `PLUS-11 return ${lossCount} times: no volume is writable twice, nothing leaks, and the other nodes provision`,
    async () => {
      const random = seededRandom(Number(process.env.LOST_NODES_SEED ?? 1))
      const bothRunning = async () => (await areAllRunning('shared')) && (await areAllRunning('local'))
      await waitUntil(bothRunning, 'all pods run')
      const ratios: number[] = []
      const counts = new Map<Loss, number>()
      for (let turn = 0; turn < lossCount; turn++) {
        const loss = turn < LOSSES.length ? LOSSES[turn]! : LOSSES[Math.floor(random() * LOSSES.length)]!
        const usedNodes = (await podsOf('shared')).map(({ spec }) => spec.nodeName as string)
        const node = usedNodes[Math.floor(random() * usedNodes.length)]!
        ratios.push(await loseAndReturn(node, loss))
        counts.set(loss, (counts.get(loss) ?? 0) + 1)
        await waitUntil(bothRunning, `all pods run after ${node} was ${loss}`)
        let isPaused = false
        void Promise.all(NODES.map((name) => load.pause(name))).then(() => {
          isPaused = true
        })
        await waitUntil(async () => isPaused, `no claim is being provisioned after ${node} was ${loss}`)
        let leftovers: string[] = []
        await waitUntil(async () => {
          leftovers = await findLeftovers(cluster)
          return leftovers.length === 0
        }, `nothing is left over after ${node} was ${loss}`).catch((error) => {
          throw new Error(`${leftovers.join('\n')}\n${(error as Error).message}`)
        })
        expect(await findInterleavedWrites(cluster)).toEqual([])
        expect(cluster.unexpectedExits()).toEqual([])
        if (turn % 10 === 9) console.log(summary(turn + 1, counts, ratios))
      }
      await load.stop()
      console.log(summary(lossCount, counts, ratios))
    },
    60_000 + lossCount * 60_000,
  )

  const summary = (turns: number, counts: ReadonlyMap<Loss, number>, ratios: readonly number[]): string => {
    const sorted = [...ratios].sort((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(2)
    const claims = [...load.counts.values()].reduce((sum, count) => sum + count, 0)
    const kinds = [...counts].map(([loss, count]) => `${count} ${loss}`).join(', ')
    return `${turns} losses (${kinds}); ${claims} claims on other nodes; rate while a node is lost, as a share of the rate before: median ${at(0.5)}, quartiles ${at(0.25)} and ${at(0.75)}`
  }
})
