// Generates faults of a stock API server: for a while it denies permissions or does not serve a kind. The faults are limited
// to what the system can do without: optional kinds, events, and the patch verb on resources that clients can update instead.
import type { StockVerb } from '../environment/stock-answers.ts'
import type { Fault, Step } from '../plan/plan.ts'
import type { Rng } from './rng.ts'

const READ_VERBS = ['get', 'list', 'watch'] as const satisfies readonly StockVerb[]
const WRITE_VERBS = ['create', 'update', 'patch', 'delete'] as const satisfies readonly StockVerb[]

const DENIALS: readonly (readonly [weight: number, denied: Omit<Fault & { readonly do: 'deny' }, 'do' | 'ms'>])[] = [
  [2, { plural: 'volumeattributesclasses', verbs: ['list', 'watch'] }],
  [1, { plural: 'volumeattributesclasses', verbs: READ_VERBS }],
  [2, { plural: 'csistoragecapacities', verbs: READ_VERBS }],
  [1, { plural: 'csistoragecapacities', verbs: WRITE_VERBS }],
  [2, { plural: 'events', verbs: WRITE_VERBS }],
  [3, { plural: 'persistentvolumeclaims', verbs: ['patch'] }],
  [3, { plural: 'persistentvolumes', verbs: ['patch'] }],
  [1, { plural: 'volumeattachments', verbs: ['patch'] }],
  [1, { plural: 'nodes', verbs: ['patch'] }],
]
const OPTIONAL_KINDS = ['volumeattributesclasses', 'csistoragecapacities'] as const

const FAULTS_MIN = 2
const FAULTS_MAX = 6
const DURATION_MS = [20_000, 400_000] as const

export function generateStockFaults(rng: Rng, untilMs: number): Step[] {
  return Array.from({ length: rng.between(FAULTS_MIN, FAULTS_MAX) }, () => {
    const atMs = Math.floor(rng.fraction() * untilMs)
    const ms = rng.between(...DURATION_MS)
    const action: Fault = rng.chance(0.25)
      ? { do: 'stop serving', plural: rng.pick(OPTIONAL_KINDS), ms }
      : { do: 'deny', ...rng.pickWeighted(DENIALS), ms }
    return { atMs, action }
  })
}
