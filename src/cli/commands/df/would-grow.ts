// `stowage df --would-grow`: what automatic growth would do now with each claim that has a policy. It plans with the function of
// the controller (volumes/auto-grow.ts) and writes nothing. Quotas are checked by the server when the controller writes.
import { claimClassName } from '../../../api/kinds/shared/class-names.ts'
import { keyOfObject } from '../../../client/index.ts'
import { explainShortage } from '../../../controllers/expanding/free-capacity.ts'
import { findPolicy, planAutoGrowth } from '../../../volumes/auto-grow.ts'
import type { UsageReport } from '../../../volumes/read-usage.ts'
import { claimCapacity } from '../../../volumes/sizes.ts'
import { type Color, paint } from '../../output/color.ts'
import { formatTable } from '../../output/table.ts'
import { formatPercent } from '../../output/units.ts'
import type { SpaceLists } from './cluster-lists.ts'

export interface GrowthEntry {
  readonly namespace: string
  readonly claim: string
  readonly capacity: string
  /** Used share of the bytes. Absent if it is not known. */
  readonly used?: number
  /** Where the policy is. Absent if it is invalid. */
  readonly policyFrom?: 'claim' | 'class'
  readonly action: 'grow' | 'lower' | 'nothing' | 'wait' | 'stop' | 'invalid'
  /** The size that the claim would request. */
  readonly to?: string
  readonly message: string
}

export function planGrowth(lists: SpaceLists, usage: UsageReport, nowMs: number): readonly GrowthEntry[] {
  const classes = new Map(lists.classes.map((storageClass) => [storageClass.metadata.name, storageClass]))
  const volumes = new Map(lists.volumes.map((volume) => [volume.metadata.name, volume]))
  return lists.claims.flatMap((claim): GrowthEntry[] => {
    const storageClass = classes.get(claimClassName(claim) ?? '')
    const found = findPolicy(claim, storageClass)
    if (found.is === 'none') return []
    const { namespace = '', name } = claim.metadata
    const measured = usage.byClaim.get(keyOfObject(claim))
    const { usedBytes, freeBytes } = measured ?? {}
    const common = {
      namespace,
      claim: name,
      capacity: claimCapacity(claim),
      ...(usedBytes === undefined || freeBytes === undefined ? {} : { used: usedBytes / (usedBytes + freeBytes) }),
    }
    if (found.is === 'invalid') return [{ ...common, action: 'invalid', message: found.message }]
    const volume = volumes.get(claim.spec?.volumeName ?? '')
    const capacities = lists.capacities.filter(
      ({ storageClassName }) => storageClassName === volume?.spec?.storageClassName,
    )
    const plan = planAutoGrowth({
      claim,
      policy: found.policy,
      usage: measured,
      allowsExpansion: storageClass?.allowVolumeExpansion === true,
      shortageFor: (target) => volume && explainShortage(volume, target, capacities),
      nowMs,
    })
    const to = plan.do === 'grow' || plan.do === 'lower' ? { to: plan.to } : {}
    return [{ ...common, policyFrom: found.from, action: plan.do, ...to, message: plan.message }]
  })
}

const COLORS: Readonly<Partial<Record<GrowthEntry['action'], Color>>> = {
  grow: 'green',
  lower: 'red',
  stop: 'red',
  invalid: 'red',
}

export function formatGrowth(entries: readonly GrowthEntry[], hasColors: boolean): string {
  if (entries.length === 0)
    return 'Neither a claim nor the class of a claim has the annotation stowage.dev/auto-grow.\n'
  const rows = entries.map(({ namespace, claim, capacity, used, action, to, message }) => {
    const change = to === undefined ? action : action === 'lower' ? `lower to ${to}` : to
    return [
      namespace,
      claim,
      capacity,
      used === undefined ? 'unknown' : formatPercent(used),
      COLORS[action] ? paint(change, COLORS[action], hasColors) : change,
      message,
    ]
  })
  return formatTable([['NAMESPACE', 'CLAIM', 'CAPACITY', 'USE', 'WOULD GROW TO', 'WHY'], ...rows], {
    rightAligned: new Set([2, 3]),
  })
}
