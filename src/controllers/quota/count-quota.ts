// Computes the initial usage of a quota that was created or changed, and restores the limits and keys of an edited status. The
// API server charges later writes.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { calculateUsage, formatAmounts } from '../../api/quota/index.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { type Client, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { type ContentsDeps, readContents } from './contents.ts'

export async function countQuota(key: string, deps: ContentsDeps): Promise<Outcome> {
  const { client } = deps
  if (!(await client.commitsAtomically())) return stuck('the API server maintains quotas itself')
  const ref = refOfKey(key)
  // A list, because the role of upstream's quota controller grants no get.
  const fieldSelector = `metadata.name=${ref.name}`
  const [quota] = (await client.list(resourceQuotaKind, { namespace: ref.namespace, fieldSelector })).items
  if (!quota || isComplete(quota)) return done
  return writeUsage(client, quota, { ...recordedUsage(quota), ...(await countMissingKeys(quota, deps)) })
}

async function countMissingKeys(quota: Readonly<ResourceQuota>, deps: ContentsDeps): Promise<Record<string, string>> {
  const keys = uncountedKeys(quota)
  if (keys.length === 0) return {}
  const contents = await readContents(quota.metadata.namespace ?? '', [quota], deps)
  return formatAmounts(calculateUsage(quota.spec, keys, contents))
}

/** Whether status.hard equals spec.hard and status.used has exactly the keys of spec.hard. */
export function isComplete(quota: Readonly<ResourceQuota>): boolean {
  const { spec, status } = quota
  const isHardCurrent = jsonEquals((spec?.hard ?? {}) as JsonValue, (status?.hard ?? {}) as JsonValue)
  const usedKeyCount = Object.keys(status?.used ?? {}).length
  return isHardCurrent && uncountedKeys(quota).length === 0 && usedKeyCount === Object.keys(spec?.hard ?? {}).length
}

const recordedUsage = ({ spec, status }: Readonly<ResourceQuota>): Record<string, string> =>
  Object.fromEntries(Object.entries(status?.used ?? {}).filter(([key]) => Object.hasOwn(spec?.hard ?? {}, key)))

/** Returns the keys of spec.hard that are missing in status.used. */
export const uncountedKeys = ({ spec, status }: Readonly<ResourceQuota>): string[] =>
  Object.keys(spec?.hard ?? {}).filter((key) => !Object.hasOwn(status?.used ?? {}, key))

/** Writes the status with the resourceVersion that was counted as a precondition, because every charge changes the quota. */
export async function writeUsage(
  client: Client,
  quota: Readonly<ResourceQuota>,
  usage: Record<string, string>,
): Promise<Outcome> {
  const status = { hard: { ...quota.spec?.hard }, used: usage }
  try {
    await client.update(resourceQuotaKind, { ...quota, status }, { subresource: 'status' })
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the quota changed during the count')
    throw error
  }
}
