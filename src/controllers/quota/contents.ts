// Lists the objects of a namespace that its quotas count.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { type Contents, kindsOfKeys } from '../../api/quota/index.ts'
import type { Client } from '../../client/index.ts'

export interface ContentsDeps {
  readonly client: Client
  readonly kinds: readonly Kind[]
}

/** Reads from the server, not from a cache: the count must not be older than the quota. */
export async function readContents(
  namespace: string,
  quotas: readonly Readonly<ResourceQuota>[],
  { client, kinds }: ContentsDeps,
): Promise<Contents> {
  const keys = quotas.flatMap(({ spec }) => Object.keys(spec?.hard ?? {}))
  const found = new Map<string, readonly Readonly<KubeObject>[]>()
  for (const { group, plural } of kindsOfKeys(keys)) {
    const kind = kinds.find((one) => one.group === group && one.plural === plural)
    if (!kind?.namespaced || kind.isForeign || kind.isReview) continue // not stored in a namespace
    found.set(`${plural}.${group}`, (await client.list<KubeObject>(kind, { namespace })).items)
  }
  return ({ group, plural }) => found.get(`${plural}.${group}`) ?? []
}
