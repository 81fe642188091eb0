// Reads the lists of objects that a command needs from any API server. A list that the user may not read is empty, and the
// missing rule is recorded.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { isForbidden, isNotServed } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { listAll } from '../../client/list-all.ts'

/** The kind of each list. */
type ListKinds = Readonly<Record<string, object>>

type ObjectOf<K> = K extends Kind<infer T> ? T : KubeObject

export type Lists<K> = { readonly [L in keyof K]: readonly Readonly<Stored<ObjectOf<K[L]> & KubeObject>>[] }

export interface MissingRule<L> {
  readonly list: L
  /** The rule that is missing: `list pods in all namespaces`. */
  readonly rule: string
}

export interface ReadOptions<L> {
  readonly client: Pick<Client, 'list'>
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined
  /** The lists that are read in the namespace only. */
  readonly namespaceLists: ReadonlySet<L>
  readonly signal: AbortSignal
}

export interface ReadLists<K> {
  readonly lists: Lists<K>
  readonly missingRules: readonly MissingRule<keyof K>[]
}

/**
 * The list of a kind that the server does not serve is empty. Rejects with an ApiError if a list fails for another reason than a
 * missing permission, for example because the server cannot be reached.
 */
export async function readLists<K extends ListKinds>(
  kinds: K,
  { client, namespace, namespaceLists, signal }: ReadOptions<keyof K>,
): Promise<ReadLists<K>> {
  const missingRules: MissingRule<keyof K>[] = []
  const readList = async (list: keyof K): Promise<readonly Readonly<Stored>[]> => {
    const kind = kinds[list] as unknown as Kind
    const onlyNamespace = namespaceLists.has(list) ? namespace : undefined
    try {
      return await listAll(client, kind, { namespace: onlyNamespace, signal })
    } catch (error) {
      if (isForbidden(error)) missingRules.push({ list, rule: ruleOf(kind, onlyNamespace) })
      else if (!isNotServed(error)) throw error
      return []
    }
  }
  const names = Object.keys(kinds) as (keyof K)[]
  const entries = await Promise.all(names.map(async (list) => [list, await readList(list)] as const))
  missingRules.sort((a, b) => names.indexOf(a.list) - names.indexOf(b.list))
  return { lists: Object.fromEntries(entries) as unknown as Lists<K>, missingRules }
}

const ruleOf = ({ group, plural, namespaced }: Kind, namespace: string | undefined): string => {
  const resource = group ? `${plural}.${group}` : plural
  if (!namespaced) return `list ${resource}`
  return `list ${resource} in ${namespace === undefined ? 'all namespaces' : `the namespace ${namespace}`}`
}
