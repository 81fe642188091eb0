// What a namespace holds of the kinds that some quotas count, as a count needs it.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { type Contents, kindsOfKeys } from '../../api/quota/index.ts'
import type { Client } from '../../client/index.ts'

export interface ContentsDeps {
  readonly client: Client
  readonly kinds: readonly Kind[]
}

/** Reads now, not from a cache: a count must not be older than the quota it is for. */
export async function readContents(
  namespace: string,
  quotas: readonly Readonly<ResourceQuota>[],
  { client, kinds }: ContentsDeps,
): Promise<Contents> {
  const keys = quotas.flatMap(({ spec }) => Object.keys(spec?.hard ?? {}))
  const found = new Map<string, readonly Readonly<KubeObject>[]>()
  for (const { group, plural } of kindsOfKeys(keys)) {
    const kind = kinds.find((one) => one.group === group && one.plural === plural)
    if (!kind?.namespaced || kind.isForeign || kind.isReview) continue // nothing of it can be here
    found.set(`${plural}.${group}`, (await client.list<KubeObject>(kind, { namespace })).items)
  }
  return ({ group, plural }) => found.get(`${plural}.${group}`) ?? []
}
