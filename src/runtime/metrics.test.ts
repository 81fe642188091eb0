import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { manualClock } from '../base/manual-clock.ts'
import { createClientMetrics } from './metrics.ts'
import { retryAfter } from './outcome.ts'
import { createWorkQueue } from './work-queue.ts'

describe('the metrics of the runtime', () => {
  it('SYS-11 use the names of client-go and controller-runtime, and omit watches from the request duration', async () => {
    const registry = new Registry()
    const metrics = createClientMetrics(registry)
    const clock = manualClock()
    const observer = metrics.queueObserver('claims')
    const queue = createWorkQueue({ name: 'claims', clock, random: () => 0, observer })
    metrics.queues.add(queue)
    metrics.caches.add({
      kind: configMapKind,
      lastEventAgeMs: () => 5_000,
      stats: () => ({ objects: 3, relists: 2, foundByRelist: 1 }),
    })
    metrics.requests.observeRequest({ verb: 'LIST', resource: 'configmaps', code: 200, seconds: 0.2 })
    metrics.requests.observeRequest({ verb: 'WATCH', resource: 'configmaps', code: 410, seconds: 300 })
    metrics.setLeadership('provisioner', true)
    const abort = new AbortController()
    queue.add('a')
    queue.add('b')
    const metricsBefore = await registry.metrics()
    const queueRun = queue.run(async () => retryAfter(1_000, 'later'), abort.signal)
    await new Promise((resolve) => setImmediate(resolve))
    const metricsAfter = await registry.metrics()
    abort.abort()
    await queueRun

    expect(metricsBefore).toContain('workqueue_depth{name="claims"} 2')
    for (const line of [
      'rest_client_requests_total{method="GET",code="200",resource="configmaps"} 1',
      'rest_client_requests_total{method="GET",code="410",resource="configmaps"} 1',
      'rest_client_request_duration_seconds_count{verb="LIST",resource="configmaps"} 1',
      'workqueue_depth{name="claims"} 0',
      'workqueue_adds_total{name="claims"} 2',
      'workqueue_retries_total{name="claims"} 2',
      'workqueue_queue_duration_seconds_count{name="claims"} 2',
      'workqueue_work_duration_seconds_count{name="claims"} 2',
      'workqueue_unfinished_work_seconds{name="claims"} 0',
      'workqueue_longest_running_processor_seconds{name="claims"} 0',
      'stowage_watch_last_event_age_seconds{resource="configmaps"} 5',
      'stowage_cache_missed_changes{resource="configmaps"} 1',
      'leader_election_master_status{name="provisioner"} 1',
    ]) {
      expect(metricsAfter).toContain(line)
    }
    expect(metricsAfter).not.toContain('verb="WATCH"')
  })
})
