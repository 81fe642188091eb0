// Moves one claim to another class: writes it with the resourceVersion that was read, and reports its status. The plan and
// the meaning of a status are plan.ts.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { ApiError } from '../../../api/status-error.ts'
import { type Client, keyOfObject, type ObjectRef } from '../../../client/index.ts'
import { type ClaimWork, type FinalStatus, latestWarning } from '../../bulk/index.ts'
import { checkMove, classOf, type MovePlan, type Operation, planMove, shown } from './plan.ts'
import { MIGRATE_RECORD, type MigrateRecord, recordOf, textOfRecord } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

const WRITER = 'stowage-migrate'
/** Conflicts before giving up on a claim that another client keeps changing. */
const CONFLICTS_MAX = 10

export interface MovingClaim extends ClaimWork {
  readonly claim: Claim
}

export function movingClaim(claim: Claim, operation: Operation, client: Client): MovingClaim {
  const ref = refOf(claim)
  const wanted = operation.isUndo ? operation.from : operation.to
  return {
    key: keyOfObject(claim),
    claim,
    async start(signal) {
      for (let conflicts = 0; ; conflicts++) {
        const now = await client.get(persistentVolumeClaimKind, ref, { signal })
        if (now.metadata.uid !== claim.metadata.uid) return { is: 'failed', message: 'it was deleted and recreated' }
        const plan = planMove(now, operation)
        const ended = endOf(plan)
        if (ended) return ended
        if (plan.do !== 'move') return { version: now.metadata.resourceVersion ?? '' }
        try {
          return taken(await write(client, now, plan, { signal }), plan)
        } catch (error) {
          if (!(error instanceof ApiError) || error.code !== 409 || conflicts >= CONFLICTS_MAX) throw error
        }
      }
    },
    check: (now) => checkMove(now, wanted),
    explain: () => latestWarning(client, ref),
  }
}

export function endOf(plan: MovePlan): FinalStatus | undefined {
  if (plan.do === 'refuse') return { is: 'failed', message: plan.because }
  return plan.do === 'leave' ? { is: 'nothing', message: plan.because } : undefined
}

type Move = Extract<MovePlan, { do: 'move' }>

/** A server with the gate disabled accepts the write and drops the class. */
function taken(claim: Claim, { to }: Move): { readonly version: string } | FinalStatus {
  if (classOf(claim) === to) return { version: claim.metadata.resourceVersion ?? '' }
  return {
    is: 'failed',
    message: `the server did not take the class ${shown(to)}: is its feature gate VolumeAttributesClass off?`,
  }
}

/** A dry run on the server; undefined if it succeeds. */
export async function tryMove(client: Client, claim: Claim, move: Move): Promise<FinalStatus | undefined> {
  try {
    const answer = taken(await write(client, claim, move, { dryRun: true }), move)
    return 'is' in answer ? answer : undefined
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 429 || error.code >= 500) throw error
    return error.code === 409 ? undefined : { is: 'failed', message: error.message } // changed since; read again when it is started
  }
}

function write(
  client: Client,
  claim: Claim,
  { to, record }: Move,
  options: { readonly dryRun?: boolean; readonly signal?: AbortSignal },
): Promise<Claim> {
  const { uid, resourceVersion } = claim.metadata
  const body = {
    metadata: { uid, resourceVersion, annotations: { [MIGRATE_RECORD]: textOfRecord(record) } },
    spec: { volumeAttributesClassName: to || null },
  }
  return patch(client, claim, body, options)
}

/** All claims have moved: a later run starts a new operation. */
export async function closeRecord(client: Client, key: ObjectRef, { id }: Operation): Promise<void> {
  await changeRecord(client, key, id, (record) => (record.closed ? undefined : { ...record, closed: true }))
}

/** Removes the record: the claim is back in its old class. */
export async function dropRecord(client: Client, key: ObjectRef, { id }: Operation): Promise<void> {
  await changeRecord(client, key, id, () => null)
}

async function changeRecord(
  client: Client,
  ref: ObjectRef,
  id: string,
  change: (record: MigrateRecord) => MigrateRecord | null | undefined,
): Promise<void> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      const claim = await client.get(persistentVolumeClaimKind, ref)
      const record = recordOf(claim)
      const next = record?.id === id ? change(record) : undefined
      if (next === undefined) return
      const { uid, resourceVersion } = claim.metadata
      const annotations = { [MIGRATE_RECORD]: next && textOfRecord(next) }
      await patch(client, claim, { metadata: { uid, resourceVersion, annotations } })
      return
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === 404) return
      if (error.code !== 409 || conflicts >= CONFLICTS_MAX) throw error
    }
  }
}

const patch = (client: Client, claim: Claim, body: object, options: object = {}): Promise<Claim> =>
  client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'merge', body }, { fieldManager: WRITER, ...options })

const refOf = ({ metadata: { namespace = '', name = '' } }: Claim): ObjectRef => ({ namespace, name })
