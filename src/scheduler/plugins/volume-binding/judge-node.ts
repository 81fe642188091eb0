// What would become of a pod's claims on one node: which existing volumes they would get, which would have to be made,
// or why neither can be. Prepared once per pod, asked for every node.

import type { TopologySelectorTerm } from '../../../api/kinds/shared/references-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { chooseVolume } from '../../../volumes/choose-volume.ts'
import { type ClaimRequirements, requirementsOf, type Volume } from '../../../volumes/matching.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { CapacityReport } from '../../capacity/capacity-report.ts'
import { type CapacityFacts, type Demand, type Fit, VolumeFitter } from '../../capacity/fit-volumes.ts'
import type { NodeView } from '../../cluster/node-view.ts'
import { getOrMake } from '../../get-or-make.ts'
import type { FreeVolumes } from './free-volumes.ts'
import type { InHand } from './in-hand.ts'
import type { BoundClaim, DelayedClaim } from './pod-volumes.ts'
import { REASON_LOST, REASON_NO_SPACE, REASON_NO_VOLUME, REASON_PLACE } from './reasons.ts'

export interface NodePlan {
  readonly bind: readonly { readonly claim: DelayedClaim; readonly volume: Volume }[]
  /** Without a report where the driver does not take part in capacity tracking. */
  readonly make: readonly { readonly claim: DelayedClaim; readonly report: CapacityReport | undefined }[]
  /** Another pod that uses the claim is having it bound to this node. */
  readonly follow: readonly DelayedClaim[]
}

export interface JudgeFacts {
  readonly free: FreeVolumes
  readonly inHand: InHand
  readonly capacity: CapacityFacts
  /** Whether the driver reports capacity and wants it to be heeded. */
  readonly tracksCapacity: (driver: string) => boolean
}

interface Prepared {
  readonly claim: DelayedClaim
  readonly wish: ClaimRequirements
  /** Whether any existing volume could be for it; most often none could. */
  readonly mayHaveVolume: boolean
  readonly canBeMade: boolean
  readonly isAllowed: (labels: Readonly<Record<string, string>>) => boolean
}

const NOTHING_TO_DO: NodePlan = { bind: [], make: [], follow: [] }

export class NodeJudge {
  readonly #facts: JudgeFacts
  readonly #bound: readonly BoundClaim[]
  readonly #delayed: readonly Prepared[]
  readonly #plans = new Map<NodeView, NodePlan>()
  /** Nothing but new volumes will do, on whichever node: the usual case, in which less has to be asked of each. */
  readonly #areAllNew: boolean
  readonly #fits = new Map<NodeView, Fit>()
  readonly #fitter: VolumeFitter
  readonly #isTracked: ReadonlySet<DelayedClaim>
  readonly #fitters = new Map<string, VolumeFitter>()

  constructor(facts: JudgeFacts, bound: readonly BoundClaim[], delayed: readonly DelayedClaim[]) {
    this.#facts = facts
    this.#bound = bound
    this.#delayed = delayed.map((claim) => prepared(claim, facts.free))
    const tracked = delayed.filter((claim) => claim.bytes > 0n && facts.tracksCapacity(claim.storageClass.provisioner))
    this.#isTracked = new Set(tracked)
    this.#fitter = new VolumeFitter(facts.capacity, tracked.map(demandOf))
    this.#areAllNew = this.#delayed.every(
      ({ claim, mayHaveVolume }) =>
        !mayHaveVolume && claim.selectedNode === undefined && !facts.inHand.given(claim.key),
    )
  }

  /** After `judge` found the node to do. */
  planFor(node: NodeView): NodePlan {
    const plan = this.#plans.get(node)
    if (plan) return plan
    const fit = this.#fits.get(node)
    return fit ? { bind: [], make: this.#makes(this.#delayed, fit), follow: [] } : NOTHING_TO_DO
  }

  shortage(): string | undefined {
    for (const fitter of [this.#fitter, ...this.#fitters.values()]) {
      const shortage = fitter.shortage()
      if (shortage !== undefined) return shortage
    }
    return undefined
  }

  judge(node: NodeView): readonly string[] | undefined {
    const forBound = this.#judgeBound(node)
    const forDelayed = this.#areAllNew ? this.#judgeNew(node) : this.#judgeDelayed(node)
    if (!forBound && !forDelayed) return undefined
    const reasons: string[] = []
    if (forBound?.isElsewhere) reasons.push(REASON_PLACE)
    if (forDelayed) reasons.push(forDelayed)
    if (forBound?.isLost) reasons.push(REASON_LOST)
    return reasons
  }

  #judgeBound(node: NodeView): { isElsewhere: boolean; isLost: boolean } | undefined {
    let isElsewhere = false
    let isLost = false
    for (const { volume } of this.#bound) {
      if (!volume) isLost = true
      else if (!isReachableFrom(volume, node)) isElsewhere = true
    }
    return isElsewhere || isLost ? { isElsewhere, isLost } : undefined
  }

  #judgeNew(node: NodeView): string | undefined {
    for (const { canBeMade, isAllowed } of this.#delayed) {
      if (!canBeMade || !isAllowed(node.labels)) return REASON_NO_VOLUME
    }
    const fit = this.#fitter.fit(node.labels)
    if (!fit) return REASON_NO_SPACE
    this.#fits.set(node, fit)
    return undefined
  }

  #judgeDelayed(node: NodeView): string | undefined {
    const bind: { claim: DelayedClaim; volume: Volume }[] = []
    const toMake: Prepared[] = []
    const follow: DelayedClaim[] = []
    let excluded: Set<string> | undefined
    for (const one of this.#delayed) {
      const { claim } = one
      const given = this.#facts.inHand.given(claim.key)
      if (given) {
        if (given.nodeName !== node.name) return REASON_NO_VOLUME
        follow.push(claim)
      } else if (claim.selectedNode !== undefined) {
        if (claim.selectedNode !== node.name) return REASON_NO_VOLUME
        toMake.push(one)
      } else {
        const volume = one.mayHaveVolume ? this.#choose(one, node, excluded) : undefined
        if (volume) {
          bind.push({ claim, volume })
          excluded ??= new Set(this.#facts.inHand.volumes)
          excluded.add(volume.metadata.name ?? '')
        } else toMake.push(one)
      }
    }
    for (const { canBeMade, isAllowed } of toMake) if (!canBeMade || !isAllowed(node.labels)) return REASON_NO_VOLUME
    const make = this.#fit(toMake, node)
    if (!make) return REASON_NO_SPACE
    this.#plans.set(node, { bind, make, follow })
    return undefined
  }

  #choose({ claim, wish }: Prepared, node: NodeView, excluded: ReadonlySet<string> = this.#facts.inHand.volumes) {
    return chooseVolume(claim.claim, wish, this.#facts.free.from(node), { node, excluded })
  }

  #fit(toMake: readonly Prepared[], node: NodeView): NodePlan['make'] | undefined {
    const fit = this.#fitterFor(toMake.filter(({ claim }) => this.#isTracked.has(claim))).fit(node.labels)
    return fit && this.#makes(toMake, fit)
  }

  /** A fit has a report for each tracked claim, in their order. */
  #makes(toMake: readonly Prepared[], fit: Fit): NodePlan['make'] {
    let nth = 0
    return toMake.map(({ claim }) => ({ claim, report: this.#isTracked.has(claim) ? fit[nth++] : undefined }))
  }

  /** Which claims need a volume made may differ from node to node; most often all do. */
  #fitterFor(tracked: readonly Prepared[]): VolumeFitter {
    if (tracked.length === this.#isTracked.size) return this.#fitter
    const id = tracked.map(({ claim }) => claim.key).join(' ')
    const demands = () => tracked.map(({ claim }) => demandOf(claim))
    return getOrMake(this.#fitters, id, () => new VolumeFitter(this.#facts.capacity, demands()))
  }
}

const demandOf = ({ key, storageClass, bytes }: DelayedClaim): Demand => ({
  claimKey: key,
  className: storageClass.metadata.name ?? '',
  driver: storageClass.provisioner,
  bytes,
})

function prepared(claim: DelayedClaim, free: FreeVolumes): Prepared {
  const wish = requirementsOf(claim.claim)
  const { provisioner, allowedTopologies } = claim.storageClass
  return {
    claim,
    wish,
    mayHaveVolume: free.has(wish) || free.reservedFor(claim.key).length > 0,
    canBeMade: canMake(provisioner),
    isAllowed: allowing(allowedTopologies),
  }
}

const NO_PROVISIONER = 'kubernetes.io/no-provisioner'
export const canMake = (provisioner: StorageClass['provisioner']): boolean =>
  provisioner !== '' && provisioner !== NO_PROVISIONER

/** No terms allow every node; a term without conditions allows none. */
function allowing(terms: readonly TopologySelectorTerm[] | undefined): Prepared['isAllowed'] {
  if (!terms || terms.length === 0) return () => true
  return (labels) =>
    terms.some(({ matchLabelExpressions = [] }) => {
      if (matchLabelExpressions.length === 0) return false
      return matchLabelExpressions.every(
        ({ key, values }) => Object.hasOwn(labels, key) && values.includes(labels[key]!),
      )
    })
}
