// Selects the claims of a command by name or label selector. They are sorted in natural order (db-0, db-1, …, db-10), so that
// every run processes them in the same order.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { UsageError } from '../../base/usage-error.ts'
import { type Client, find, keyOfObject } from '../../client/index.ts'
import type { Claim } from './claim-writes.ts'

interface Selection {
  readonly namespace: string
  readonly names: readonly string[]
  readonly selector?: string
}

/** A selector that matches more claims is rejected. */
const CLAIMS_MAX = 10_000

export async function selectClaims(
  client: Client,
  { namespace, names, selector }: Selection,
): Promise<readonly Claim[]> {
  if (names.length > 0 && selector !== undefined)
    throw new UsageError('Specify names of claims or --selector, not both.')
  if (selector !== undefined) return listBySelector(client, namespace, selector)
  if (names.length === 0) throw new UsageError('No claims are selected: specify names of claims or --selector.')
  const claims: Claim[] = []
  for (const name of new Set(names)) {
    const claim = await find(client, persistentVolumeClaimKind, { namespace, name })
    if (!claim) {
      throw new Error(
        `There is no claim ${name} in namespace ${namespace}; kubectl get pvc -n ${namespace} lists the claims.`,
      )
    }
    claims.push(claim)
  }
  return sortNaturally(claims)
}

async function listBySelector(client: Client, namespace: string, selector: string): Promise<readonly Claim[]> {
  if (selector.trim() === '')
    throw new UsageError('--selector is empty and would select every claim; specify names of claims.')
  const request = { namespace, labelSelector: selector, limit: CLAIMS_MAX + 1 }
  const { items } = await client.list(persistentVolumeClaimKind, request)
  if (items.length === 0) throw new Error(`No claim in namespace ${namespace} matches the selector ${selector}.`)
  if (items.length > CLAIMS_MAX)
    throw new Error(`More than ${CLAIMS_MAX} claims match the selector ${selector}; select fewer at a time.`)
  return sortNaturally(items)
}

const naturalOrder = new Intl.Collator('en', { numeric: true })

export const sortNaturally = (claims: readonly Claim[]): readonly Claim[] =>
  [...claims].sort((a, b) => naturalOrder.compare(keyOfObject(a), keyOfObject(b)))
