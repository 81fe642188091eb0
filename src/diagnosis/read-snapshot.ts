// Reads the objects of a diagnosis or a simulation through the client. If the user may not read a list, records the
// missing permission and reads the list in the namespace of the diagnosed object, if that is allowed.
import type { Kind, Stored } from '../api/kind.ts'
import { isForbidden, isNotServed } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'
import { type MissingRule, SNAPSHOT_KINDS, type Snapshot, type SnapshotList, type SnapshotObjects } from './snapshot.ts'

const LIST_PAGE_SIZE = 500
/** Events of cluster-scoped objects are in this namespace. */
const CLUSTER_EVENTS_NAMESPACE = 'default'
/** The lists that are read only in the namespace of the diagnosed object, unless all namespaces are requested. */
const NAMESPACE_LISTS: ReadonlySet<SnapshotList> = new Set(['quotas', 'limitRanges', 'events'])

const ALL_LISTS = Object.keys(SNAPSHOT_KINDS) as SnapshotList[]
/** A diagnosis needs no priority classes: the pods have their priorities. */
const DIAGNOSIS_LISTS = ALL_LISTS.filter((list) => list !== 'priorityClasses')

export interface ReadOptions {
  readonly client: Pick<Client, 'list' | 'serves'>
  /** The namespace of the diagnosed object. Absent for a volume or node. */
  readonly namespace?: string
  /** The lists to read. Default: those of a diagnosis. */
  readonly lists?: readonly SnapshotList[]
  /** Whether to read quotas, limit ranges and events of all namespaces. Default: only those of the namespace. */
  readonly allNamespaces?: boolean
  readonly nowMs: number
  readonly signal: AbortSignal
}

export async function readSnapshot(options: ReadOptions): Promise<Snapshot> {
  const { client, namespace, lists = DIAGNOSIS_LISTS, allNamespaces = false, nowMs, signal } = options
  const missingRules: MissingRule[] = []
  const notServed = new Set<SnapshotList>()
  const listAll = async (kind: Kind, inNamespace?: string): Promise<readonly Readonly<Stored>[]> => {
    const objects: Readonly<Stored>[] = []
    let continueToken: string | undefined
    do {
      const page = await client.list(kind, { namespace: inNamespace, limit: LIST_PAGE_SIZE, continueToken, signal })
      objects.push(...page.items)
      continueToken = page.continueToken
    } while (continueToken)
    return objects
  }
  const readList = async (list: SnapshotList): Promise<readonly Readonly<Stored>[]> => {
    const kind = SNAPSHOT_KINDS[list] as unknown as Kind
    const isInNamespace = NAMESPACE_LISTS.has(list) && !allNamespaces
    const onlyNamespace = isInNamespace ? (namespace ?? CLUSTER_EVENTS_NAMESPACE) : undefined
    const addMissingRule = (inNamespace: string | undefined, fields: { readonly isPartial?: true } = {}) =>
      missingRules.push({ list, rule: formatRule(kind, inNamespace), ...fields })
    try {
      return await listAll(kind, onlyNamespace)
    } catch (error) {
      if (!isNotServed(error) && !isForbidden(error)) throw error
      // A stock API server authorizes first, so it can also forbid listing a kind that it does not serve.
      if (isNotServed(error) || !(await client.serves(kind))) {
        notServed.add(list)
        return []
      }
    }
    if (!kind.namespaced || onlyNamespace || !namespace) {
      addMissingRule(onlyNamespace)
      return []
    }
    try {
      const objects = await listAll(kind, namespace)
      addMissingRule(undefined, { isPartial: true })
      return objects
    } catch (error) {
      if (!isForbidden(error)) throw error
      addMissingRule(namespace) // the smallest permission that suffices to read the object
      return []
    }
  }
  const read = async (list: SnapshotList) => [list, lists.includes(list) ? await readList(list) : []] as const
  const entries = await Promise.all(ALL_LISTS.map(read))
  missingRules.sort((a, b) => ALL_LISTS.indexOf(a.list) - ALL_LISTS.indexOf(b.list))
  return { ...(Object.fromEntries(entries) as unknown as SnapshotObjects), nowMs, missingRules, notServed }
}

const formatRule = ({ group, plural, namespaced }: Kind, namespace: string | undefined): string => {
  const resource = group ? `${plural}.${group}` : plural
  if (!namespaced) return `list ${resource}`
  return `list ${resource} in ${namespace === undefined ? 'all namespaces' : `the namespace ${namespace}`}`
}
