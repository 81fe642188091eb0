// Selects the claims and the operation of `stowage migrate`: an interrupted operation is resumed under its id, and --undo
// selects the claims with the record of an operation, not all claims of the class.
import { matchesLabels, parseLabelSelector } from '../../../api/selectors.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type Claim, inNaturalOrder } from '../../bulk/index.ts'
import { classOf, type Operation, shown } from './plan.ts'
import { type MigrateRecord, recordOf } from './record.ts'

export interface Choice {
  readonly operation: Operation
  readonly claims: readonly Claim[]
  /** An earlier run of the operation was interrupted. */
  readonly isResumed: boolean
}

/** More claims are rejected: select fewer with --selector or --namespace. */
const CLAIMS_MAX = 50_000

interface Forward {
  readonly from: string
  readonly to: string
  /** The id of a new operation. */
  readonly newId: string
}

export function selectForward(claims: readonly Claim[], { from, to, newId }: Forward): Choice {
  const isOpen = (record: MigrateRecord | undefined): record is MigrateRecord =>
    record !== undefined && record.from === from && record.to === to && !record.closed && !record.undo
  const started = claims.filter((claim) => isOpen(recordOf(claim)) && classOf(claim) === to)
  const id = started.map((claim) => recordOf(claim)!.id).sort()[0] ?? newId
  const ofOperation = started.filter((claim) => recordOf(claim)!.id === id)
  const chosen = [...claims.filter((claim) => classOf(claim) === from), ...ofOperation]
  return {
    operation: { id, from, to, isUndo: false },
    claims: bounded(inNaturalOrder(chosen)),
    isResumed: ofOperation.length > 0,
  }
}

interface Backward {
  readonly id?: string
  readonly from?: string
  readonly to?: string
}

export function selectBackward(claims: readonly Claim[], wanted: Backward): Choice | undefined {
  const moved = claims.filter((claim) => {
    const record = recordOf(claim)
    return (
      record !== undefined &&
      (wanted.id === undefined || record.id === wanted.id) &&
      (wanted.from === undefined || record.from === wanted.from) &&
      (wanted.to === undefined || record.to === wanted.to)
    )
  })
  const operations = new Map<string, { readonly record: MigrateRecord; readonly claims: Claim[] }>()
  for (const claim of moved) {
    const record = recordOf(claim)!
    const known = operations.get(record.id)
    if (known) known.claims.push(claim)
    else operations.set(record.id, { record, claims: [claim] })
  }
  if (operations.size > 1) throw new UsageError(severalOperations([...operations.values()]))
  const [only] = operations.values()
  if (!only) return undefined
  const { id, from, to } = only.record
  return {
    operation: { id, from, to, isUndo: true },
    claims: bounded(inNaturalOrder(only.claims)),
    isResumed: only.claims.some((claim) => recordOf(claim)?.undo),
  }
}

function severalOperations(all: readonly { readonly record: MigrateRecord; readonly claims: readonly Claim[] }[]) {
  const lines = all.map(
    ({ record, claims }) =>
      `  --operation ${record.id}   ${claims.length} claim${claims.length === 1 ? '' : 's'} from ${shown(record.from)} to ${shown(record.to)}`,
  )
  return `Several operations could be undone; choose one:\n${lines.sort().join('\n')}`
}

function bounded(claims: readonly Claim[]): readonly Claim[] {
  if (claims.length <= CLAIMS_MAX) return claims
  throw new Error(
    `${claims.length} claims are selected, and one operation moves at most ${CLAIMS_MAX}; select fewer with --selector or --namespace.`,
  )
}

export function withLabels(claims: readonly Claim[], selector: string | undefined): readonly Claim[] {
  if (selector === undefined) return claims
  const wanted = parseLabelSelector(selector)
  return claims.filter(({ metadata }) => matchesLabels(wanted, metadata.labels))
}
