// Compares a simulation with the scheduler itself on random clusters. The scheduler runs on an in-process server, and the
// test creates the pods one after the other. SCALE=100, as in `npm run prove`, runs 10,000 clusters; AGREEMENT_SEED replays one.
import { expect, it } from 'vitest'
import { seededRandom } from '../../../test/helpers/random.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Random } from '../../base/clock.ts'
import { decodeManifest } from '../../cli/manifests/decode-manifest.ts'
import { DRIVER, gi, HOST, type SchedulerFixture, startSchedulerFixture } from '../../scheduler/scheduler.fixture.ts'
import { readSnapshot } from '../read-snapshot.ts'
import { simulate } from './simulate.ts'

const { SCALE = '1', AGREEMENT_SEED } = process.env
const CLUSTERS = SCALE === '100' ? 10_000 : 200
const ZONE = 'topology.example.com/zone'
const ZONES = ['east', 'west']

interface NewPod {
  readonly claims: readonly object[]
  readonly pod: object & { readonly metadata: { readonly name: string } }
}

/** Returns pods in the order of their creation, each with its own claims or with the only claim of the previous pod. */
function generatePods(random: Random): NewPod[] {
  const chance = (probability: number) => random() < probability
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const upTo = (max: number) => Math.floor(random() * (max + 1))
  const claimSpec = () => ({
    accessModes: ['ReadWriteOnce'],
    storageClassName: pick(['local', 'local', 'placed', 'static']),
    resources: { requests: { storage: `${1 + upTo(5)}Gi` } },
  })
  let shared: string | undefined
  return Array.from({ length: 3 + upTo(5) }, (_, index) => {
    const name = `pod-${index}`
    const isSharing = shared !== undefined && chance(0.15)
    const count = isSharing ? 0 : upTo(2)
    const claims = Array.from({ length: count }, (__, nth) => ({
      metadata: { namespace: 'default', name: `claim-${index}-${nth}` },
      spec: claimSpec(),
    }))
    const claimNames = isSharing ? [shared!] : claims.map(({ metadata }) => metadata.name)
    // A shared claim is the only claim of its pods: otherwise, placing one pod could make an earlier, rejected pod fit.
    shared = claims.length === 1 ? claims[0]!.metadata.name : undefined
    const template = { spec: claimSpec() }
    const volumes = [
      ...claimNames.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      ...(!isSharing && chance(0.15) ? [{ name: 'tmp', ephemeral: { volumeClaimTemplate: template } }] : []),
    ]
    if (volumes.length > 1) shared = undefined
    const requests = chance(0.7) ? { cpu: pick(['500m', '1', '3']) } : {}
    const pod = {
      metadata: { namespace: 'default', name },
      spec: {
        containers: [{ name: 'app', image: 'app', resources: { requests } }],
        volumes,
        ...(chance(0.15) ? { nodeSelector: { [ZONE]: pick(ZONES) } } : {}),
      },
    }
    return { claims, pod }
  })
}

/** Waits until the pod is bound or unschedulable. */
async function waitUntilDecided(podKey: string, { scheduler, nodeOf, waitUntil }: SchedulerFixture): Promise<void> {
  const name = podKey.slice(podKey.indexOf('/') + 1)
  await waitUntil(async () => {
    const status = scheduler.queuedPods().find(({ key }) => key === podKey)
    if (status?.state !== 'unschedulable') return status === undefined && (await nodeOf(name)) !== undefined
    return !status.message?.includes('waiting for ephemeral volume controller')
  }, `the decision about ${name}`)
}

/** Creates the cluster, lets the scheduler and the controllers place the pods, and compares the result with a simulation. */
async function compare(seed: number): Promise<{ placed: number; rejected: number }> {
  const random = seededRandom(seed)
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const tie = random() // a constant, so that ties do not depend on the number of calls
  const fixture = await startSchedulerFixture({ random: () => tie })
  try {
    await fixture.createDriver()
    await fixture.createClass('local')
    const placement = pick(['spread', 'pack', 'headroom', 'headroom=50%'])
    await fixture.createClass('placed', {
      metadata: { name: 'placed', annotations: { 'stowage.dev/placement': placement } },
    })
    await fixture.createClass('static', { provisioner: 'kubernetes.io/no-provisioner' })
    const nodeCount = 1 + Math.floor(random() * 5)
    for (let index = 0; index < nodeCount; index++) {
      const name = `n${index}`
      const spec = random() < 0.1 ? { unschedulable: true } : {}
      const allocatable = { cpu: pick(['2', '4']), memory: '8Gi', pods: pick(['2', '110']) }
      await fixture.createNode(name, { labels: { [ZONE]: pick(ZONES) }, spec, allocatable, hasDriver: false })
      const driver = {
        name: DRIVER,
        nodeID: name,
        topologyKeys: [HOST],
        allocatable: { count: 1 + Math.floor(random() * 5) },
      }
      await fixture.client.create(csiNodeKind, { metadata: { name }, spec: { drivers: [driver] } })
      const free = 1 + Math.floor(random() * 12)
      fixture.storage.freeBytes.set(name, gi(free))
      for (const storageClassName of ['local', 'placed'])
        await fixture.createCapacity(`${storageClassName}-${name}`, {
          storageClassName,
          nodeTopology: { matchLabels: { [HOST]: name } },
          capacity: `${free}Gi`,
        })
      if (random() < 0.5) {
        const nodeSelectorTerms = [{ matchExpressions: [{ key: HOST, operator: 'In', values: [name] }] }]
        const nodeAffinity = { required: { nodeSelectorTerms } }
        await fixture.createVolume(`volume-${name}`, {
          size: '4Gi',
          spec: { storageClassName: 'static', nodeAffinity },
        })
      }
    }
    const newPods = generatePods(random)
    await fixture.settle()
    const nowMs = fixture.server.clock.nowMs()
    const signal = new AbortController().signal
    const snapshot = await readSnapshot({ client: fixture.client, allNamespaces: true, nowMs, signal })
    const context = { namespace: 'default', nowMs }
    const manifest = (kind: string, value: object) => ({ source: 'test', apiVersion: 'v1', kind, value: { ...value } })
    const result = await simulate(
      {
        snapshot,
        claims: newPods
          .flatMap(({ claims }) => claims)
          .map((claim) => decodeManifest(persistentVolumeClaimKind, manifest('PersistentVolumeClaim', claim), context)),
        pods: newPods.map(({ pod }) => decodeManifest(podKind, manifest('Pod', pod), context)),
        unplacedPods: [],
      },
      { random: () => tie, pause: async () => {} },
    )
    const expected = Object.fromEntries(result.placed.map(({ name, node }) => [name, node]))
    const actual: Record<string, string> = {}
    for (const { claims, pod } of newPods) {
      for (const claim of claims) await fixture.client.create(persistentVolumeClaimKind, claim as never)
      await fixture.client.create(podKind, pod as never)
      await waitUntilDecided(`default/${pod.metadata.name}`, fixture)
      const node = await fixture.nodeOf(pod.metadata.name)
      if (node) actual[pod.metadata.name] = node
    }
    expect(expected, `seed ${seed}`).toEqual(actual)
    return { placed: result.placed.length, rejected: result.rejected.length }
  } finally {
    await fixture.stop()
  }
}

it(`PLUS-2 a simulation places pods as the scheduler does on ${CLUSTERS} random clusters`, {
  timeout: 60_000 + 500 * CLUSTERS,
}, async () => {
  const seeds = AGREEMENT_SEED ? [Number(AGREEMENT_SEED)] : Array.from({ length: CLUSTERS }, (_, index) => index + 1)
  const counts = { placed: 0, rejected: 0 }
  for (const seed of seeds) {
    const { placed, rejected } = await compare(seed)
    counts.placed += placed
    counts.rejected += rejected
  }
  if (!AGREEMENT_SEED)
    for (const [outcome, count] of Object.entries(counts)) expect(count, outcome).toBeGreaterThan(CLUSTERS / 2)
})
