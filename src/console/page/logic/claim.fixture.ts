// Builds claim objects, claim rows and claim views for tests. A test sets only the fields that matter.
import type { ConsoleObject } from '../../protocol.ts'
import { type ClaimRow, projectClaim } from '../rows/claim.ts'
import { type ClaimSources, type ClaimView, joinClaim } from './claim-view.ts'

export const aClaimObject = (
  name: string,
  { spec = {}, status = {}, ...metadata }: { spec?: object; status?: object; [field: string]: unknown } = {},
): ConsoleObject => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: '1', ...metadata },
  spec: { storageClassName: 'fast', resources: { requests: { storage: '10Gi' } }, volumeName: `pv-${name}`, ...spec },
  status: { phase: 'Bound', capacity: { storage: '10Gi' }, ...status },
})

export const aClaimRow = (name: string, fields: Partial<ClaimRow> = {}): ClaimRow => ({
  ...projectClaim(aClaimObject(name)),
  ...fields,
})

export const aClaimView = (
  name: string,
  { fields = {}, ...sources }: Partial<ClaimSources> & { fields?: Partial<ClaimRow> } = {},
): ClaimView => joinClaim(aClaimRow(name, fields), { why: undefined, usage: undefined, pods: [], ...sources })
