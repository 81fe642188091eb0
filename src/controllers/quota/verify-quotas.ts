// Compares the recorded usage of a namespace's quotas with the sum over its objects. Both change in the same transaction,
// so a difference is a bug, unless a user edited the status. It is logged, counted and repaired.

import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { compareQuantities } from '../../api/quantity.ts'
import { calculateUsage, formatAmounts } from '../../api/quota/index.ts'
import type { Logger } from '../../base/log.ts'
import { type ContentsDeps, readContents } from './contents.ts'
import { uncountedKeys, writeUsage } from './count-quota.ts'
import type { QuotaMetrics } from './metrics.ts'

export interface VerifyDeps extends ContentsDeps {
  readonly log: Logger
  readonly quotaMetrics?: QuotaMetrics
}

/** Verifies only the quotas that did not change during the reads. The others are verified in a later round. */
export async function verifyQuotas(namespace: string, deps: VerifyDeps): Promise<void> {
  const quotas = await listQuotas()
  if (quotas.length === 0) return
  const contents = await readContents(namespace, quotas, deps)
  const versions = new Set((await listQuotas()).map(versionOf))
  const unchangedQuotas = quotas.filter((quota) => versions.has(versionOf(quota)))
  for (const quota of unchangedQuotas) {
    const keys = Object.keys(quota.spec?.hard ?? {})
    const countedUsage = formatAmounts(calculateUsage(quota.spec, keys, contents))
    const wrongKeys = keys.filter(
      (key) => compareQuantities(countedUsage[key] ?? '0', quota.status?.used?.[key] ?? '0') !== 0,
    )
    if (wrongKeys.length > 0) await repairQuota(quota, wrongKeys, countedUsage)
  }
  deps.quotaMetrics?.countVerifications(unchangedQuotas.length)

  async function listQuotas(): Promise<Readonly<ResourceQuota>[]> {
    const { items } = await deps.client.list(resourceQuotaKind, { namespace })
    return items.filter((quota) => uncountedKeys(quota).length === 0)
  }

  async function repairQuota(
    quota: Readonly<ResourceQuota>,
    wrongKeys: readonly string[],
    countedUsage: Record<string, string>,
  ) {
    const differences = wrongKeys
      .map((key) => `${key}: recorded ${quota.status?.used?.[key]}, counted ${countedUsage[key]}`)
      .join('; ')
    deps.log.error(
      { namespace, quota: quota.metadata.name, wrongKeys },
      `Quota "${namespace}/${quota.metadata.name}" has a wrong usage (${differences}). The usage is being repaired. Unless a user edited its status, please report this as a bug.`,
    )
    deps.quotaMetrics?.countDifference()
    await writeUsage(deps.client, quota, countedUsage)
  }
}

const versionOf = ({ metadata }: Readonly<ResourceQuota>): string => `${metadata.uid} ${metadata.resourceVersion}`
