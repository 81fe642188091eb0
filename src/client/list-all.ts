// Reads a complete list in pages.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import type { Client } from './client.ts'

export interface ListAllOptions {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined
  readonly signal: AbortSignal
}

const PAGE_SIZE = 500

export async function listAll<T extends KubeObject>(
  client: Pick<Client, 'list'>,
  kind: Kind<T>,
  { namespace, signal }: ListAllOptions,
): Promise<readonly Readonly<Stored<T>>[]> {
  const objects: Readonly<Stored<T>>[] = []
  let continueToken: string | undefined
  do {
    const page = await client.list(kind, { namespace, limit: PAGE_SIZE, continueToken, signal })
    objects.push(...page.items)
    continueToken = page.continueToken
  } while (continueToken)
  return objects
}
