// Runs `stowage grow --undo`: if a claim requests more than its volume's size, lowers the request to that size, so that the
// cluster stops trying, and removes the record of --by. Claims that have the size they request are left unchanged.
import { compareQuantities } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import { type Client, keyOfObject } from '../../../client/index.ts'
import {
  type BulkDeps,
  type BulkRequest,
  type Claim,
  type ClaimResult,
  CONCURRENT_REQUESTS_MAX,
  exitUnlessSuccessful,
  mapConcurrently,
  patchClaim,
  type StartResult,
  selectClaims,
  startChange,
  withClient,
} from '../../bulk/index.ts'
import { formatOutput } from '../../output/format-output.ts'
import { formatTable } from '../../output/table.ts'
import { FIELD_MANAGER } from './grow-claim.ts'
import { GROW_RECORD } from './record.ts'

export interface UndoRequest extends BulkRequest {
  readonly names: readonly string[]
}

export const runUndo = (request: UndoRequest, deps: BulkDeps): Promise<void> =>
  withClient(request, 'stowage-grow', deps, (client, namespace) =>
    undoGrowth(client, { ...request, namespace: request.namespace ?? namespace }, deps),
  )

/** Throws ExitError if a request cannot be lowered. */
export async function undoGrowth(
  client: Client,
  request: UndoRequest & { readonly namespace: string },
  deps: BulkDeps,
): Promise<void> {
  const claims = await selectClaims(client, request)
  const results = await mapConcurrently(claims, CONCURRENT_REQUESTS_MAX, (claim) =>
    undoClaim(client, claim, request, deps.signal),
  )
  const rows = results.map(({ key, is, message }) => ({ claim: key, result: RESULT_NAMES[is], message }))
  const table = () =>
    formatTable([['CLAIM', 'RESULT', 'MESSAGE'], ...rows.map(({ claim, result, message }) => [claim, result, message])])
  deps.write(await formatOutput(request.output, { dryRun: request.isDryRun, undo: true, claims: rows }, table))
  exitUnlessSuccessful(results, request, deps.signal)
}

const RESULT_NAMES = {
  done: 'lowered',
  nothing: 'unchanged',
  failed: 'failed',
  unfinished: 'failed',
  untouched: 'would lower',
}

async function undoClaim(
  client: Client,
  claim: Claim,
  { isDryRun }: UndoRequest,
  signal: AbortSignal,
): Promise<ClaimResult> {
  const key = keyOfObject(claim)
  let message = ''
  const write = async (currentClaim: Claim, storage: string): Promise<StartResult> => {
    const patch = { annotations: { [GROW_RECORD]: null }, spec: { resources: { requests: { storage } } } }
    const { metadata } = await patchClaim(client, currentClaim, patch, {
      fieldManager: FIELD_MANAGER,
      signal,
      dryRun: isDryRun,
    })
    return { version: metadata.resourceVersion }
  }
  try {
    const result = await startChange(client, claim, signal, (currentClaim) => {
      const requestedSize = currentClaim.spec?.resources?.requests?.storage
      const capacity = currentClaim.status?.capacity?.storage
      if (requestedSize === undefined || capacity === undefined)
        return { is: 'nothing', message: 'the claim has no volume' }
      if (compareQuantities(requestedSize, capacity) <= 0)
        return { is: 'nothing', message: `the volume has ${capacity}` }
      message = `the request ${isDryRun ? 'would go' : 'went'} from ${requestedSize} to ${capacity}, the size of the volume`
      return () => write(currentClaim, capacity)
    })
    return 'is' in result ? { key, ...result } : { key, is: isDryRun ? 'untouched' : 'done', message }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { key, is: 'failed', message: error.message }
  }
}
