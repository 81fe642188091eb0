// Counts what is used of a quota that an administrator has created or changed. The API server charges every write from
// then on; a write that comes before us counts by itself, and then there is nothing left to do. Bounds that somebody wrote
// into the status are put right as well: nothing judges by them, but people read them.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { tally, textOf } from '../../api/quota/index.ts'
import { ApiError } from '../../api/status-error.ts'
import { type Client, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { type ContentsDeps, readContents } from './contents.ts'

export async function countQuota(key: string, deps: ContentsDeps): Promise<Outcome> {
  const { client } = deps
  if (!(await client.commitsAtomically())) return stuck('this server keeps its quotas itself')
  const ref = refOfKey(key)
  const quota = await client.get(resourceQuotaKind, ref).catch(unlessGone)
  if (!quota || saysAll(quota)) return done
  return writeUse(client, quota, { ...knownUse(quota), ...(await newlyCounted(quota, deps)) })
}

async function newlyCounted(quota: Readonly<ResourceQuota>, deps: ContentsDeps): Promise<Record<string, string>> {
  const keys = uncountedKeys(quota)
  if (keys.length === 0) return {}
  const contents = await readContents(quota.metadata.namespace ?? '', [quota], deps)
  return textOf(tally(quota.spec, keys, contents))
}

/** Whether the status speaks of what the spec bounds, and of nothing else. */
export function saysAll(quota: Readonly<ResourceQuota>): boolean {
  const { spec, status } = quota
  const isSameBound = jsonEquals((spec?.hard ?? {}) as JsonValue, (status?.hard ?? {}) as JsonValue)
  const said = Object.keys(status?.used ?? {}).length
  return isSameBound && uncountedKeys(quota).length === 0 && said === Object.keys(spec?.hard ?? {}).length
}

const knownUse = ({ spec, status }: Readonly<ResourceQuota>): Record<string, string> =>
  Object.fromEntries(Object.entries(status?.used ?? {}).filter(([key]) => Object.hasOwn(spec?.hard ?? {}, key)))

/** Keys of which the quota does not say how much is used. */
export const uncountedKeys = ({ spec, status }: Readonly<ResourceQuota>): string[] =>
  Object.keys(spec?.hard ?? {}).filter((key) => !Object.hasOwn(status?.used ?? {}, key))

/** Only into the very quota that was counted for: whatever changes its use changes it. */
export async function writeUse(
  client: Client,
  quota: Readonly<ResourceQuota>,
  used: Record<string, string>,
): Promise<Outcome> {
  const status = { hard: { ...quota.spec?.hard }, used }
  try {
    await client.update(resourceQuotaKind, { ...quota, status }, { subresource: 'status' })
    return done
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return done
    if (error instanceof ApiError && error.code === 409) return backOff('something was charged meanwhile')
    throw error
  }
}

function unlessGone(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 404) return undefined
  throw error
}
