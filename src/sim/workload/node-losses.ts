// Generates lost nodes: nodes that are lost for good, return before or after they count as lost, return with their mounts, or are
// cut off from the server while their pods continue to write. Each loss has a volume that a pod on the node uses and that another
// pod needs after the loss.
import { NAMESPACES } from '../plan/catalog.ts'
import type { Action, Fault, Ref, Setup, Step } from '../plan/plan.ts'
import { nodesOf } from '../plan/process-names.ts'
import type { Rng } from './rng.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
/** The time after which the pod of a loss runs. */
const READY_MS = 40 * SECOND_MS
const LOST_FOR_GOOD_CHANCE = 0.4
const HOSTNAME = 'kubernetes.io/hostname'

export function generateNodeLosses(rng: Rng, setup: Setup, count: number, untilMs: number): Step[] {
  const nodes = nodesOf(setup)
  const isForGood = rng.chance(LOST_FOR_GOOD_CHANCE)
  return Array.from({ length: count }, (_, nth) => {
    const node = rng.pick(nodes)
    const fault = isForGood && nth === 0 ? loseForGood(rng, node) : loseForSomeTime(rng, node)
    const atMs = READY_MS + rng.fraction() * Math.max(0, untilMs - READY_MS - MINUTE_MS)
    return [{ atMs: Math.floor(atMs), action: fault }, ...moveVolume(rng, node, nth, atMs)]
  }).flat()
}

const fenceMs = (rng: Rng): number => rng.between(1 * SECOND_MS, 150 * SECOND_MS)

const loseForGood = (rng: Rng, node: string): Fault => ({ do: 'lose node', node, how: 'power', fenceMs: fenceMs(rng) })

function loseForSomeTime(rng: Rng, node: string): Fault {
  const fence = fenceMs(rng)
  const soonMs = fence + rng.between(100, 15 * SECOND_MS)
  const lateMs = fence + rng.between(30 * SECOND_MS, 7 * MINUTE_MS)
  return rng.pickWeighted<Fault>([
    [3, { do: 'lose node', node, how: 'power', fenceMs: fence, backMs: soonMs }],
    [3, { do: 'lose node', node, how: 'power', fenceMs: fence, backMs: lateMs }],
    [4, { do: 'lose node', node, how: 'suspend', fenceMs: fence, backMs: rng.chance(0.3) ? soonMs : lateMs }],
    [4, { do: 'lose node', node, how: 'split', backMs: rng.between(30 * SECOND_MS, 8 * MINUTE_MS) }],
    [2, { do: 'lose node', node, how: 'split', fenceMs: fence, backMs: lateMs }],
  ])
}

/** A pod on the node uses a volume of net.sim. After the loss it is deleted, and another pod needs the volume. */
function moveVolume(rng: Rng, node: string, nth: number, lossMs: number): Step[] {
  const [namespace] = NAMESPACES
  const claim: Ref = { namespace, name: `loss-${nth}` }
  const pod = (name: string, selector: object): Action => ({
    do: 'create',
    kind: 'pod',
    object: {
      metadata: { namespace, name },
      spec: {
        ...selector,
        containers: [{ name: 'main', image: 'scratch', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim.name } }],
        terminationGracePeriodSeconds: 1,
      },
    },
  })
  const spec = {
    accessModes: [rng.chance(0.8) ? 'ReadWriteOnce' : 'ReadWriteOncePod'],
    storageClassName: rng.pick(['net-now', 'net-wait']),
    resources: { requests: { storage: '1Gi' } },
  }
  const startMs = Math.floor(lossMs - READY_MS)
  const moveMs = Math.floor(lossMs + rng.between(SECOND_MS, 2 * MINUTE_MS))
  return [
    { atMs: startMs, action: { do: 'create', kind: 'claim', object: { metadata: { ...claim }, spec } } },
    { atMs: startMs, action: pod(`${claim.name}-a`, { nodeSelector: { [HOSTNAME]: node } }) },
    { atMs: moveMs, action: { do: 'delete', kind: 'pod', ref: { namespace, name: `${claim.name}-a` } } },
    { atMs: moveMs, action: pod(`${claim.name}-b`, {}) },
  ]
}
