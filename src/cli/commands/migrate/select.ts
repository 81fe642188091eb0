// Selects the claims and the operation of `stowage migrate`. An interrupted operation is resumed with its id. --undo selects
// the claims with an operation's record, not all claims of the class.
import { matchesLabels, parseLabelSelector } from '../../../api/selectors.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type Claim, sortNaturally } from '../../bulk/index.ts'
import { attributesClassNameOf, classLabel, type Operation } from './plan.ts'
import { type MigrateRecord, recordOf } from './record.ts'

export interface Selection {
  readonly operation: Operation
  readonly claims: readonly Claim[]
  /** Whether an earlier run of the operation was interrupted. */
  readonly isResumed: boolean
}

/** A selection of more claims is rejected. */
const CLAIMS_MAX = 50_000

interface ForwardOptions {
  readonly from: string
  readonly to: string
  /** A new operation's id. */
  readonly newId: string
}

export function selectMove(claims: readonly Claim[], { from, to, newId }: ForwardOptions): Selection {
  const isOpen = (record: MigrateRecord | undefined): record is MigrateRecord =>
    record !== undefined && record.from === from && record.to === to && !record.closed && !record.undo
  const startedClaims = claims.filter((claim) => isOpen(recordOf(claim)) && attributesClassNameOf(claim) === to)
  const id = startedClaims.map((claim) => recordOf(claim)!.id).sort()[0] ?? newId
  const operationClaims = startedClaims.filter((claim) => recordOf(claim)!.id === id)
  const selectedClaims = [...claims.filter((claim) => attributesClassNameOf(claim) === from), ...operationClaims]
  return {
    operation: { id, from, to, isUndo: false },
    claims: checkCount(sortNaturally(selectedClaims)),
    isResumed: operationClaims.length > 0,
  }
}

interface UndoFilter {
  readonly id?: string
  readonly from?: string
  readonly to?: string
}

export function selectUndo(claims: readonly Claim[], filter: UndoFilter): Selection | undefined {
  const matchingClaims = claims.filter((claim) => {
    const record = recordOf(claim)
    return (
      record !== undefined &&
      (filter.id === undefined || record.id === filter.id) &&
      (filter.from === undefined || record.from === filter.from) &&
      (filter.to === undefined || record.to === filter.to)
    )
  })
  const operations = new Map<string, { readonly record: MigrateRecord; readonly claims: Claim[] }>()
  for (const claim of matchingClaims) {
    const record = recordOf(claim)!
    const existingOperation = operations.get(record.id)
    if (existingOperation) existingOperation.claims.push(claim)
    else operations.set(record.id, { record, claims: [claim] })
  }
  if (operations.size > 1) throw new UsageError(describeOperations([...operations.values()]))
  const [operation] = operations.values()
  if (!operation) return undefined
  const { id, from, to } = operation.record
  return {
    operation: { id, from, to, isUndo: true },
    claims: checkCount(sortNaturally(operation.claims)),
    isResumed: operation.claims.some((claim) => recordOf(claim)?.undo),
  }
}

function describeOperations(
  operations: readonly { readonly record: MigrateRecord; readonly claims: readonly Claim[] }[],
) {
  const lines = operations.map(
    ({ record, claims }) =>
      `  --operation ${record.id}   ${claims.length} claim${claims.length === 1 ? '' : 's'} from ${classLabel(record.from)} to ${classLabel(record.to)}`,
  )
  return `Several operations could be undone; choose one:\n${lines.sort().join('\n')}`
}

function checkCount(claims: readonly Claim[]): readonly Claim[] {
  if (claims.length <= CLAIMS_MAX) return claims
  throw new Error(
    `${claims.length} claims are selected, but one operation moves at most ${CLAIMS_MAX}; select fewer with --selector or --namespace.`,
  )
}

export function filterByLabels(claims: readonly Claim[], selector: string | undefined): readonly Claim[] {
  if (selector === undefined) return claims
  const filter = parseLabelSelector(selector)
  return claims.filter(({ metadata }) => matchesLabels(filter, metadata.labels))
}
