// Counts what is used of a quota that an administrator has created or changed. The API server charges every write from
// then on; a write that comes before us counts by itself, and then there is nothing left to do.
import { resourceQuotaKind } from '../../api/kinds/resource-quota.ts'
import { tally, textOf } from '../../api/quota/index.ts'
import { ApiError } from '../../api/status-error.ts'
import type { ResourceQuota } from '../../api/types/quota.ts'
import { backOff, type Client, done, type Outcome, refOfKey, stuck } from '../../client/index.ts'
import { type ContentsDeps, readContents } from './contents.ts'

export async function countQuota(key: string, deps: ContentsDeps): Promise<Outcome> {
  const { client } = deps
  if (!(await client.commitsAtomically())) return stuck('this server keeps its quotas itself')
  const ref = refOfKey(key)
  const quota = await client.get(resourceQuotaKind, ref).catch(unlessGone)
  if (!quota || uncountedKeys(quota).length === 0) return done
  const contents = await readContents(ref.namespace ?? '', [quota], deps)
  const counted = textOf(tally(quota.spec, uncountedKeys(quota), contents))
  return writeUse(client, quota, { ...quota.status?.used, ...counted })
}

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
