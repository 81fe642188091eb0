import { expect, it, vi } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { AgentMetrics, VolumeStats } from '../metrics.ts'
import { reportUsage } from './report-usage.ts'

const labels = { namespace: 'shop', persistentvolumeclaim: 'orders' }

function startReports({ isServed = true } = {}) {
  const clock = manualClock()
  const volumes = new Map<string, { labels: typeof labels; stats: VolumeStats }>()
  const reports: unknown[] = []
  const create = vi.fn(async (_kind: unknown, { spec }: { spec: { volumes: unknown } }) => {
    reports.push(spec.volumes)
    return {}
  })
  const client = { serves: async () => isServed, create } as never
  const stop = new AbortController()
  const metrics: Pick<AgentMetrics, 'volumes'> = { volumes }
  const ended = reportUsage({ client, process: 'node-a', metrics, clock, log: silentLog }, stop.signal)
  return { clock, volumes, reports, create, stop, ended }
}

it('PLUS-16 reportUsage sends changed usage within five seconds, unchanged usage once per minute, and an empty list when it stops', async () => {
  const { clock, volumes, reports, stop, ended } = startReports()
  await clock.advance(20_000)
  expect(reports).toEqual([])
  const io = { read: { iopsUsed: 2, throughputUsed: 10 }, write: { iopsUsed: 3 } }
  volumes.set('shop/orders', { labels, stats: { usedBytes: 1, ...io } })
  await clock.advance(5_000)
  const usage = { namespace: 'shop', claim: 'orders', usedBytes: 1, iops: 5, throughputBytes: 10 }
  expect(reports).toEqual([[usage]])
  await clock.advance(59_000)
  expect(reports).toHaveLength(1)
  await clock.advance(6_000)
  expect(reports).toEqual([[usage], [usage]])
  stop.abort()
  await ended
  expect(reports).toEqual([[usage], [usage], []])
})

it('PLUS-16 reportUsage sends nothing to a server that does not serve reports', async () => {
  const { clock, volumes, create, stop, ended } = startReports({ isServed: false })
  volumes.set('shop/orders', { labels, stats: { usedBytes: 1 } })
  await clock.advance(200_000)
  stop.abort()
  await ended
  expect(create).not.toHaveBeenCalled()
})
