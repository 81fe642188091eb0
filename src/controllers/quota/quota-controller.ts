// The quota controller: computes the usage of new and changed quotas (count-quota.ts) and verifies all of them
// periodically (verify-quotas.ts). The API server charges writes (src/apiserver/admission/resource-quota.ts).
import type { Kind } from '../../api/kind.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import type { Cache } from '../../runtime/index.ts'
import { createController, source } from '../../runtime/index.ts'
import { countQuota, isComplete } from './count-quota.ts'
import type { QuotaMetrics } from './metrics.ts'
import { verifyQuotas } from './verify-quotas.ts'

const NAME = 'resourcequota'
const VERIFY_INTERVAL_MS = 5 * 60_000

export interface QuotaControllerOptions extends ControllerDeps {
  /** All served kinds, because a quota can count objects of any kind. */
  readonly kinds: readonly Kind[]
  readonly quotaMetrics?: QuotaMetrics
  /** Default: 5 minutes. */
  readonly verifyIntervalMs?: number
}

export function createQuotaController(options: QuotaControllerOptions) {
  const { client, caches, kinds, clock, random, log, metrics } = options
  const quotas = caches.of(resourceQuotaKind)
  const controller = createController({
    name: NAME,
    operation: { component: 'quota', name: 'CountQuota' },
    clock,
    random,
    log,
    metrics,
    sources: [
      source({
        cache: quotas,
        keysOf: (quota) => (isComplete(quota) ? [] : [keyOfObject(quota)]),
      }),
    ],
    reconcile: (key) => countQuota(key, { client, kinds }),
  })
  metrics?.queues.add(controller.queue)
  return {
    queue: controller.queue,
    run: async (signal: AbortSignal) =>
      void (await Promise.all([controller.run(signal), verifyPeriodically(quotas, options, signal)])),
  }
}

/** Verifies one namespace at a time to limit the load. */
async function verifyPeriodically(
  quotas: Cache<ResourceQuota>,
  options: QuotaControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, log, verifyIntervalMs = VERIFY_INTERVAL_MS } = options
  while (await isSleepComplete(clock.sleep(verifyIntervalMs, signal), signal)) {
    const namespaces = new Set(quotas.list().map(({ metadata }) => metadata.namespace ?? ''))
    for (const namespace of namespaces) {
      if (signal.aborted) return
      try {
        if (await client.commitsAtomically()) await verifyQuotas(namespace, options)
      } catch (error) {
        log.warn(
          { namespace, error: String(error) },
          `Cannot verify the quotas of namespace "${namespace}"; the next attempt is in ${verifyIntervalMs / 1_000} s.`,
        )
      }
    }
  }
}

/** Returns false if the signal aborted the sleep. */
async function isSleepComplete(sleep: Promise<void>, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
