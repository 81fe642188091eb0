// Finds the grow and migrate runs that are recorded on claims, with their progress. They include runs of other processes and
// machines.
import { compareQuantities } from '../../../api/quantity.ts'
import type { RecordedRun } from '../../../console/index.ts'
import type { Claim } from '../../bulk/index.ts'
import { recordOf as growRecordOf } from '../grow/record.ts'
import { recordOf as migrateRecordOf } from '../migrate/record.ts'

type Draft = { -readonly [K in keyof RecordedRun]: RecordedRun[K] }

export function findRecordedRuns(claims: readonly Claim[]): RecordedRun[] {
  const runs = new Map<string, Draft>()
  const add = (claim: Claim, run: Omit<Draft, 'namespaces' | 'claims' | 'completed'>, isCompleted: boolean) => {
    const key = `${run.kind} ${run.id}`
    const draft = runs.get(key) ?? { ...run, namespaces: [], claims: 0, completed: 0 }
    runs.set(key, draft)
    draft.claims++
    if (isCompleted) draft.completed++
    draft.isClosed &&= run.isClosed
    draft.isUndo ||= run.isUndo
    const { namespace = '' } = claim.metadata
    if (!draft.namespaces.includes(namespace)) draft.namespaces = [...draft.namespaces, namespace].sort()
  }
  for (const claim of claims) {
    const migration = migrateRecordOf(claim)
    if (migration) {
      const { id, from, to, undo, closed } = migration
      const target = undo ? from : to
      const isCompleted = (claim.status?.currentVolumeAttributesClassName ?? '') === target
      add(claim, { kind: 'migrate', id, from, to, isClosed: closed === true, isUndo: undo === true }, isCompleted)
    }
    const growth = growRecordOf(claim)
    if (growth && growth !== 'unreadable') {
      const capacity = claim.status?.capacity?.storage
      const isCompleted = capacity !== undefined && compareQuantities(capacity, growth.to) >= 0
      const { run: id, by, closed } = growth
      add(claim, { kind: 'grow', id, by, isClosed: closed === true, isUndo: false }, isCompleted)
    }
  }
  return [...runs.values()]
}
