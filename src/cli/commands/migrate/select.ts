// Selects the claims and the operation of `stowage migrate`: an interrupted operation is resumed under its id, and --undo
// selects the claims with the record of an operation, not all claims of the class.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { matchesLabels, parseLabelSelector } from '../../../api/selectors.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { keyOfObject } from '../../../client/index.ts'
import { classOf, type Operation, shown } from './plan.ts'
import { type MigrateRecord, recordOf } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

export interface Choice {
  readonly operation: Operation
  readonly claims: readonly Claim[]
  /** Resumes an interrupted run. */
  readonly goesOn: boolean
}

/** More claims are rejected: move them in parts, by --selector or --namespace. */
const CLAIMS_MAX = 50_000

export interface Forward {
  readonly from: string
  readonly to: string
  /** The id of a new operation. */
  readonly newId: string
}

export function selectForward(claims: readonly Claim[], { from, to, newId }: Forward): Choice {
  const isOpen = (record: MigrateRecord | undefined): record is MigrateRecord =>
    record !== undefined && record.from === from && record.to === to && !record.closed && !record.undo
  const begun = claims.filter((claim) => isOpen(recordOf(claim)) && classOf(claim) === to)
  const id = begun.map((claim) => recordOf(claim)!.id).sort()[0] ?? newId
  const ofOperation = begun.filter((claim) => recordOf(claim)!.id === id)
  const chosen = [...claims.filter((claim) => classOf(claim) === from), ...ofOperation]
  return {
    operation: { id, from, to, isUndo: false },
    claims: bounded(inOrder(chosen)),
    goesOn: ofOperation.length > 0,
  }
}

export interface Backward {
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
    claims: bounded(inOrder(only.claims)),
    goesOn: only.claims.some((claim) => recordOf(claim)?.undo),
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
    `These are ${claims.length} claims, and at most ${CLAIMS_MAX} are moved at a time; narrow them by --selector or --namespace.`,
  )
}

/** Those with the labels. */
export function withLabels(claims: readonly Claim[], selector: string | undefined): readonly Claim[] {
  if (selector === undefined) return claims
  const wanted = parseLabelSelector(selector)
  return claims.filter(({ metadata }) => matchesLabels(wanted, metadata.labels))
}

const byNumbersToo = new Intl.Collator('en', { numeric: true })

const inOrder = (claims: readonly Claim[]): readonly Claim[] =>
  [...claims].sort((a, b) => byNumbersToo.compare(keyOfObject(a), keyOfObject(b)))
