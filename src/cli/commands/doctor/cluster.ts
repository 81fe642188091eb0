// Reads the objects that the checks need, each kind at most once however many checks use it.
import type { Kind, KubeObject, Stored } from '../../../api/kind.ts'
import { isNotServed } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import type { Cluster } from './check.ts'

const LIST_PAGE_SIZE = 500

export function createCluster(client: Pick<Client, 'list' | 'serves'>, signal: AbortSignal): Cluster {
  const lists = new Map<Kind, Promise<readonly Readonly<Stored>[]>>()
  const servedKinds = new Map<Kind, Promise<boolean>>()
  const once = <V>(values: Map<Kind, Promise<V>>, kind: Kind, read: () => Promise<V>): Promise<V> => {
    const value = values.get(kind) ?? read()
    values.set(kind, value)
    return value
  }
  return {
    list: <T extends KubeObject>(kind: Kind<T>) =>
      once(lists, kind as Kind, () => listAll(client, kind as Kind, signal)) as Promise<readonly Readonly<Stored<T>>[]>,
    serves: (kind) => once(servedKinds, kind, () => client.serves(kind)),
  }
}

async function listAll(
  client: Pick<Client, 'list'>,
  kind: Kind,
  signal: AbortSignal,
): Promise<readonly Readonly<Stored>[]> {
  const objects: Readonly<Stored>[] = []
  let continueToken: string | undefined
  try {
    do {
      const page = await client.list(kind, { limit: LIST_PAGE_SIZE, continueToken, signal })
      objects.push(...page.items)
      continueToken = page.continueToken
    } while (continueToken)
  } catch (error) {
    if (!isNotServed(error)) throw error
  }
  return objects
}
