// Looks after quotas beside the API server, which does the charging (src/apiserver/admission/resource-quota.ts): counts
// those that are new or changed (count-quota.ts), and now and then verifies all of them (verify-quotas.ts).
import type { Kind } from '../../api/kind.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import type { Cache } from '../../runtime/index.ts'
import { createController, source } from '../../runtime/index.ts'
import { countQuota, saysAll } from './count-quota.ts'
import type { QuotaMetrics } from './metrics.ts'
import { verifyQuotas } from './verify-quotas.ts'

const NAME = 'resourcequota'
const VERIFY_EVERY_MS = 5 * 60_000

export interface QuotaControllerOptions extends ControllerDeps {
  /** Every kind that is served: any of them can be counted. */
  readonly kinds: readonly Kind[]
  readonly quotaMetrics?: QuotaMetrics
  /** Default 5 minutes. */
  readonly verifyEveryMs?: number
}

export function createQuotaController(options: QuotaControllerOptions) {
  const { client, caches, kinds, clock, random, log, metrics } = options
  const quotas = caches.of(resourceQuotaKind)
  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    metrics,
    sources: [
      source({
        cache: quotas,
        keysOf: (quota) => (saysAll(quota) ? [] : [keyOfObject(quota)]),
      }),
    ],
    reconcile: (key) => countQuota(key, { client, kinds }),
  })
  metrics?.queues.add(controller.queue)
  return {
    queue: controller.queue,
    run: async (signal: AbortSignal) =>
      void (await Promise.all([controller.run(signal), verifyAgainAndAgain(quotas, options, signal)])),
  }
}

/** One namespace after the other, so that verifying never takes more than a small part of anything. */
async function verifyAgainAndAgain(
  quotas: Cache<ResourceQuota>,
  options: QuotaControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, log, verifyEveryMs = VERIFY_EVERY_MS } = options
  while (await sleeps(clock.sleep(verifyEveryMs, signal), signal)) {
    const namespaces = new Set(quotas.list().map(({ metadata }) => metadata.namespace ?? ''))
    for (const namespace of namespaces) {
      if (signal.aborted) return
      try {
        if (await client.commitsAtomically()) await verifyQuotas(namespace, options)
      } catch (error) {
        log.warn({ namespace, error: String(error) }, `Cannot verify the quotas of "${namespace}" now; later again.`)
      }
    }
  }
}

/** Whether the sleep came to its end. */
async function sleeps(sleep: Promise<void>, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
