// Returns a line with the cause for each claim of a snapshot that is not ready, for lists of claims. Diagnoses only claims whose
// spec or status shows that they may not be ready, and claims whose volume is lost. diagnose.ts returns the whole tree for one object.
import { compareQuantities } from '../api/quantity.ts'
import { diagnoseClaim } from './claim.ts'
import { type Claim, createCluster } from './cluster.ts'
import type { Diagnosis, DiagnosisState } from './diagnosis.ts'
import { listLostVolumes } from './lost-volume.ts'
import type { Snapshot } from './snapshot.ts'

export interface ClaimLine {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly state: DiagnosisState
  readonly reason: string
  readonly message: string
}

export interface ExplainOptions {
  readonly linesMax: number
  /** Called after every few claims to let other work run. */
  pause(): Promise<void>
}

const CLAIMS_PER_TURN = 20

export async function explainClaims(
  snapshot: Snapshot,
  { linesMax, pause }: ExplainOptions,
): Promise<{ readonly lines: readonly ClaimLine[]; readonly omitted: number }> {
  const lostVolumes = listLostVolumes(snapshot)
  const candidates = snapshot.claims.filter(
    (claim) => mayBeUnready(claim) || lostVolumes.has(claim.spec?.volumeName ?? ''),
  )
  const cluster = createCluster(snapshot)
  const lines: ClaimLine[] = []
  let examined = 0
  for (const claim of candidates) {
    if (lines.length >= linesMax) break
    const diagnosis = diagnoseClaim(claim, cluster)
    if (diagnosis.state !== 'ready') lines.push(toLine(claim, diagnosis))
    if (++examined % CLAIMS_PER_TURN === 0) await pause()
  }
  return { lines, omitted: candidates.length - examined }
}

/** Returns false if the spec and status show no problem, so that the claim needs no diagnosis. */
function mayBeUnready({ metadata, spec, status }: Claim): boolean {
  if (status?.phase !== 'Bound' || metadata.deletionTimestamp) return true
  if ((status.conditions?.length ?? 0) > 0 || status.modifyVolumeStatus || status.allocatedResourceStatuses) return true
  if ((spec?.volumeAttributesClassName ?? '') !== (status.currentVolumeAttributesClassName ?? '')) return true
  const requested = spec?.resources?.requests?.storage
  const capacity = status.capacity?.storage
  return requested !== undefined && capacity !== undefined && compareQuantities(requested, capacity) > 0
}

function toLine({ metadata }: Claim, diagnosis: Diagnosis): ClaimLine {
  const { state, reason, message } = deepestSingleCause(diagnosis)
  return { uid: metadata.uid, namespace: metadata.namespace ?? '', name: metadata.name, state, reason, message }
}

/** Descends while there is exactly one cause. The message of a parent summarizes several causes, such as one per node. */
function deepestSingleCause(diagnosis: Diagnosis): Diagnosis {
  const causes = (diagnosis.children ?? []).filter(({ state }) => state !== 'ready')
  return causes.length === 1 ? deepestSingleCause(causes[0] as Diagnosis) : diagnosis
}
