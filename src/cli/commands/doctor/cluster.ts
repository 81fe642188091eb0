// Reads the objects that the checks need, each kind at most once however many checks use it.
import type { Kind, KubeObject, Stored } from '../../../api/kind.ts'
import { isNotServed } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import { listAll } from '../../../client/list-all.ts'
import type { Cluster } from './check.ts'

export function createCluster(client: Pick<Client, 'list' | 'serves'>, signal: AbortSignal): Cluster {
  const lists = new Map<Kind, Promise<readonly Readonly<Stored>[]>>()
  const servedKinds = new Map<Kind, Promise<boolean>>()
  const readOnce = <V>(values: Map<Kind, Promise<V>>, kind: Kind, read: () => Promise<V>): Promise<V> => {
    const value = values.get(kind) ?? read()
    values.set(kind, value)
    return value
  }
  return {
    list: <T extends KubeObject>(kind: Kind<T>) =>
      readOnce(lists, kind as Kind, () => listIfServed(client, kind as Kind, signal)) as Promise<
        readonly Readonly<Stored<T>>[]
      >,
    serves: (kind) => readOnce(servedKinds, kind, () => client.serves(kind)),
  }
}

/** Returns an empty list if the server does not serve the kind. */
async function listIfServed(
  client: Pick<Client, 'list'>,
  kind: Kind,
  signal: AbortSignal,
): Promise<readonly Readonly<Stored>[]> {
  try {
    return await listAll(client, kind, { signal })
  } catch (error) {
    if (!isNotServed(error)) throw error
    return []
  }
}
