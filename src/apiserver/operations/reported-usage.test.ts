import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { createReportedUsage, USAGE_SILENCE_MS_MAX } from './reported-usage.ts'

const orders = { namespace: 'shop', claim: 'orders', usedBytes: 100, availableBytes: 900 }

async function createFixture() {
  const clock = manualClock()
  const registry = new Registry()
  const usage = createReportedUsage(clock)
  usage.register(registry)
  const samples = async () => {
    const { values } = (await registry.getSingleMetric('stowage_reported_volume_usage')!.get()) as {
      values: { labels: Record<string, string>; value: number }[]
    }
    return values.map(
      ({ labels, value }) => `${labels.process} ${labels.persistentvolumeclaim} ${labels.amount} ${value}`,
    )
  }
  return { clock, usage, samples }
}

it('PLUS-16 the server exposes the reported usage, and replaces it with the next report of the process', async () => {
  const { usage, samples } = await createFixture()
  usage.apply('system:node:n1', 'node-a', [orders])
  usage.apply('system:node:n2', 'node-b', [{ namespace: 'shop', claim: 'carts', inodes: 7 }])
  expect(await samples()).toEqual([
    'node-a orders available_bytes 900',
    'node-a orders used_bytes 100',
    'node-b carts inodes 7',
  ])
  usage.apply('system:node:n1', 'node-a', [{ ...orders, usedBytes: 200 }])
  expect(await samples()).toContain('node-a orders used_bytes 200')
  usage.apply('system:node:n1', 'node-a', [])
  expect(await samples()).toEqual(['node-b carts inodes 7'])
})

it('PLUS-16 the server drops the usage of a process that no longer reports, and rejects a report with too many volumes', async () => {
  const { clock, usage, samples } = await createFixture()
  usage.apply('u', 'node-a', [orders])
  await clock.advance(USAGE_SILENCE_MS_MAX - 1)
  usage.apply('u', 'node-a', [orders])
  await clock.advance(USAGE_SILENCE_MS_MAX - 1)
  expect(await samples()).toHaveLength(2)
  await clock.advance(1)
  expect(await samples()).toEqual([])
  expect(() => usage.apply('u', 'node-a', Array(501).fill(orders))).toThrow('at most 500 volumes')
})
