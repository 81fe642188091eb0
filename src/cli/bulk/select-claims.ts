// Selects the claims of a command by name or label selector, in natural order of names (db-0, db-1, …, db-10), so that every
// run processes them in the same order.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { parseLabelSelector } from '../../api/selectors.ts'
import { isNotFound } from '../../api/status-error.ts'
import { UsageError } from '../../base/usage-error.ts'
import { type Client, keyOfObject } from '../../client/index.ts'

export interface Selection {
  readonly namespace: string
  readonly names: readonly string[]
  readonly selector?: string
}

/** A selector that matches more is rejected: it is probably a mistake. */
const CLAIMS_MAX = 10_000

export async function selectClaims(
  client: Client,
  { namespace, names, selector }: Selection,
): Promise<readonly Readonly<PersistentVolumeClaim>[]> {
  if (names.length > 0 && selector !== undefined) throw new UsageError('Name claims, or give a --selector, not both.')
  if (selector !== undefined) return bySelector(client, namespace, selector)
  if (names.length === 0) throw new UsageError('Which claims? Name some, or give a --selector.')
  const found: Readonly<PersistentVolumeClaim>[] = []
  for (const name of new Set(names)) {
    found.push(await client.get(persistentVolumeClaimKind, { namespace, name }).catch(orMissing(namespace, name)))
  }
  return inOrder(found)
}

async function bySelector(client: Client, namespace: string, selector: string) {
  if (selector.trim() === '') throw new UsageError('--selector is empty and would select every claim; name the claims.')
  try {
    parseLabelSelector(selector)
  } catch (error) {
    throw new UsageError(`--selector ${JSON.stringify(selector)}: ${(error as Error).message}`)
  }
  const request = { namespace, labelSelector: selector, limit: CLAIMS_MAX + 1 }
  const { items } = await client.list(persistentVolumeClaimKind, request)
  if (items.length === 0) throw new Error(`No claim in namespace ${namespace} has the labels ${selector}.`)
  if (items.length > CLAIMS_MAX)
    throw new Error(`More than ${CLAIMS_MAX} claims have the labels ${selector}; select fewer at a time.`)
  return inOrder(items)
}

const orMissing = (namespace: string, name: string) => (error: unknown) => {
  if (isNotFound(error))
    throw new Error(`There is no claim ${name} in namespace ${namespace}; kubectl get pvc -n ${namespace} lists them.`)
  throw error
}

const naturalOrder = new Intl.Collator('en', { numeric: true })

const inOrder = (claims: readonly Readonly<PersistentVolumeClaim>[]) =>
  [...claims].sort((a, b) => naturalOrder.compare(keyOfObject(a), keyOfObject(b)))
