// The claims a command is about: those that were named, or all that a label selector finds. In the order of their
// names, so that a set is worked through the same way each time (db-0, db-1, …, db-10).
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { parseLabelSelector } from '../../api/selectors.ts'
import { ApiError } from '../../api/status-error.ts'
import { UsageError } from '../../base/usage-error.ts'
import { type Client, keyOfObject } from '../../client/index.ts'

export interface Selection {
  readonly namespace: string
  readonly names: readonly string[]
  readonly selector?: string
}

/** More than these are refused: a selector that finds so many was hardly meant. */
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
    found.push(await client.get(persistentVolumeClaimKind, { namespace, name }).catch(unlessMissing(namespace, name)))
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

const unlessMissing = (namespace: string, name: string) => (error: unknown) => {
  if (error instanceof ApiError && error.code === 404)
    throw new Error(`There is no claim ${name} in namespace ${namespace}; kubectl get pvc -n ${namespace} lists them.`)
  throw error
}

const byNumbersToo = new Intl.Collator('en', { numeric: true })

const inOrder = (claims: readonly Readonly<PersistentVolumeClaim>[]) =>
  [...claims].sort((a, b) => byNumbersToo.compare(keyOfObject(a), keyOfObject(b)))
