// Compares the diagnosis of a pod with the decision of the scheduler itself, on random clusters. SCALE=100, as in
// `npm run prove`, runs 10,000 clusters; AGREEMENT_SEED replays one.
import { expect, it } from 'vitest'
import { seededRandom } from '../../test/helpers/random.ts'
import type { Kind, KubeObject } from '../api/kind.ts'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { type Client, keyOfRef, type ObjectRef } from '../client/index.ts'
import type { CacheSet } from '../runtime/index.ts'
import { createScheduler } from '../scheduler/index.ts'
import { claimsOfPod } from '../volumes/claims-of-pod.ts'
import { createCluster } from './cluster.ts'
import { diagnose } from './diagnose.ts'
import { generateCluster } from './random-cluster.fixture.ts'
import { SNAPSHOT_KINDS, type Snapshot, type SnapshotList } from './snapshot.ts'
import { createSnapshotCache } from './snapshot-cache.ts'

const { SCALE = '1', AGREEMENT_SEED } = process.env
const CLUSTERS = SCALE === '100' ? 10_000 : 300
/** Bounds the wait for the first write. A scheduler that waits for the volume of another pod writes nothing. */
const TURNS_MAX = 50
const POD_KEY = 'shop/new'

interface Decision {
  /** Undefined if the scheduler selected a node. */
  readonly message: string | undefined
  /** The node that the scheduler wrote to a claim or to the binding of the pod. */
  readonly nodeName: string | undefined
  /** The node on which the scheduler preempts other pods. */
  readonly nominatedNode?: string | undefined
}

/** Runs the real scheduler until its first decision about the pod. The client records writes and never responds. */
async function schedule(snapshot: Snapshot): Promise<Decision> {
  const clock = manualClock(snapshot.nowMs)
  const writes: string[] = []
  let hasWritten = false
  const placedClaims = new Set(snapshot.pods.filter(({ spec }) => spec?.nodeName).flatMap(claimsOfPod))
  const client = new Proxy({} as Client, {
    get:
      () =>
      (...args: readonly unknown[]) => {
        hasWritten = true
        const ref = args[1] as ObjectRef
        // Ignore the claims of pods created with spec.nodeName: the scheduler also writes their selected node.
        if (!placedClaims.has(keyOfRef(ref))) writes.push(JSON.stringify(args.slice(1)))
        return new Promise(() => {})
      },
  })
  const of = <T extends KubeObject>(kind: Kind<T>) => {
    const list = Object.entries(SNAPSHOT_KINDS).find(([, candidate]) => candidate.plural === kind.plural)![0]
    return createSnapshotCache(kind as unknown as Kind, snapshot[list as SnapshotList])
  }
  const events = { record() {}, run: async () => {}, stats: () => ({ pending: 0, dropped: 0, sent: 0 }) }
  const caches = { of } as unknown as CacheSet
  const scheduler = createScheduler({ client, caches, clock, random: () => 0, log: silentLog, events })
  const abort = new AbortController()
  void scheduler.run(abort.signal)
  while (scheduler.attempts === 0) await clock.nextTurn()
  const status = scheduler.queuedPods().find(({ key }) => key === POD_KEY)
  const isUnschedulable = status?.state === 'unschedulable'
  for (let turn = 0; turn < TURNS_MAX && !isUnschedulable && !hasWritten; turn++) await clock.nextTurn()
  abort.abort()
  const nominatedNode = / placement for pod on node (\S+),/.exec(status?.message ?? '')?.[1]
  if (isUnschedulable) return { message: status.message, nodeName: undefined, nominatedNode }
  return { message: undefined, nodeName: writes.map(selectedNodeIn).find(Boolean) }
}

/** Returns the node in the annotation of a claim or in the binding of the pod. */
const selectedNodeIn = (write: string): string | undefined =>
  /"volume\.kubernetes\.io\/selected-node":"([^"]+)"/.exec(write)?.[1] ??
  /"target":\{"kind":"Node","name":"([^"]+)"/.exec(write)?.[1]

it(`PLUS-1 the diagnosis agrees with the scheduler on ${CLUSTERS} random clusters`, {
  timeout: 60_000 + 100 * CLUSTERS,
}, async () => {
  const seeds = AGREEMENT_SEED ? [Number(AGREEMENT_SEED)] : Array.from({ length: CLUSTERS }, (_, index) => index + 1)
  const counts = { fits: 0, noNodeFits: 0, podRejected: 0, preempts: 0 }
  for (const seed of seeds) {
    const snapshot = generateCluster(seededRandom(seed))
    const decision = await schedule(snapshot)
    const result = diagnose(snapshot, { kind: 'pod', namespace: 'shop', name: 'new' })
    if (result.is !== 'diagnosed') throw new Error(`seed ${seed}: ${result.is}`)
    const { diagnosis } = result
    const pod = snapshot.pods.find(({ metadata }) => metadata.name === 'new')!
    const { nodes, podRejection, preemption } = createCluster(snapshot).evaluate(pod)
    if (decision.message === undefined) {
      counts.fits++
      expect(diagnosis, `seed ${seed}`).toMatchObject({ state: 'waiting', reason: 'WaitingForScheduler' })
      const fittingNodes = nodes.filter(({ rejection }) => !rejection).map(({ nodeName }) => nodeName)
      expect(diagnosis.numbers).toMatchObject({ fitting: fittingNodes.length })
      if (decision.nodeName) expect(fittingNodes, `seed ${seed}`).toContain(decision.nodeName)
      continue
    }
    const isWaiting = preemption !== undefined && preemption.is !== 'rejected'
    expect(diagnosis.state, `seed ${seed}: ${decision.message}`).toBe(isWaiting ? 'waiting' : 'failed')
    expect(preemption?.is === 'nominated' ? preemption.nodeName : undefined, `seed ${seed}`).toBe(
      decision.nominatedNode,
    )
    if (decision.nominatedNode) counts.preempts++
    if (podRejection) {
      counts.podRejected++
      const [reason] = podRejection.status.reasons
      expect(decision.message, `seed ${seed}`).toContain(reason!.message)
      expect(diagnosis.message).toContain(reason!.message)
    } else {
      counts.noNodeFits++
      if (nodes.length > 0) expect(diagnosis.message, `seed ${seed}`).toBe(decision.message)
      const nodeChildren = diagnosis.children?.filter(({ subject }) => subject.kind === 'Node') ?? []
      expect(nodeChildren.length, `seed ${seed}`).toBe(nodes.length)
      for (const { state, message } of nodeChildren)
        expect([state, message]).toEqual(['failed', expect.stringMatching(/./)])
    }
  }
  if (!AGREEMENT_SEED)
    for (const [outcome, count] of Object.entries(counts)) expect(count, outcome).toBeGreaterThan(CLUSTERS / 60)
})
