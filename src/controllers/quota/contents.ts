// Lists the objects of a namespace that its quotas count.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { kindsOfKeys, type ListObjects } from '../../api/quota/index.ts'
import type { Client } from '../../client/index.ts'

export interface ContentsDeps {
  readonly client: Client
  readonly kinds: readonly Kind[]
}

/** Lists the objects from the server and not from a cache, because the count must not be older than the quota. */
export async function readContents(
  namespace: string,
  quotas: readonly Readonly<ResourceQuota>[],
  { client, kinds }: ContentsDeps,
): Promise<ListObjects> {
  const keys = quotas.flatMap(({ spec }) => Object.keys(spec?.hard ?? {}))
  const objects = new Map<string, readonly Readonly<KubeObject>[]>()
  for (const { group, plural } of kindsOfKeys(keys)) {
    const kind = kinds.find((candidate) => candidate.group === group && candidate.plural === plural)
    if (!kind?.namespaced || kind.isForeign || kind.isReview) continue // not stored in a namespace
    objects.set(`${plural}.${group}`, (await client.list<KubeObject>(kind, { namespace })).items)
  }
  return ({ group, plural }) => objects.get(`${plural}.${group}`) ?? []
}
