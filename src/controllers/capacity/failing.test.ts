import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/status-error.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { flakyClient } from '../../runtime/flaky-client.fixture.ts'
import { stubDriver } from '../provisioning/csi/stub-driver.fixture.ts'
import { createCapacityFixture, GI } from './capacity.fixture.ts'
import { capacityKind } from './items.ts'
import { getCapacity } from './report.ts'
import { EVERYWHERE } from './segments.ts'

async function twoZones(server = {}) {
  const fixture = await createCapacityFixture({ server })
  await fixture.aNode('n1', { zone: 'a' })
  await fixture.aNode('n2', { zone: 'b' })
  await fixture.aClass('fast')
  return fixture
}

function recordingLog() {
  const lines: string[] = []
  const keep = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`)
  const log: Logger = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
  return { log, lines }
}

/** A server that can be switched off: requests fail and watches break. */
function switchable(client: Client) {
  const flaky = flakyClient(client)
  const down = new ApiError(503, 'ServiceUnavailable', 'the server is unavailable')
  let isDown = false
  const refuseIfDown = () => {
    if (isDown) throw down
  }
  const wrapped: Client = {
    ...flaky,
    watch: (...args) => flaky.watch(...args),
    create: async (...args) => {
      refuseIfDown()
      return client.create(...args)
    },
    patch: async (...args) => {
      refuseIfDown()
      return client.patch(...args)
    },
    delete: async (...args) => {
      refuseIfDown()
      return client.delete(...args)
    },
    serves: async (kind) => {
      refuseIfDown()
      return client.serves(kind)
    },
  }
  return {
    client: wrapped,
    off() {
      isDown = true
      flaky.watchError = down
      flaky.listError = down
      flaky.cut(down)
    },
    on() {
      isDown = false
      flaky.watchError = undefined
      flaky.listError = undefined
    },
  }
}

describe('a failing driver', () => {
  it('CAP-6 keeps its last object after an error and is retried with backoff', async () => {
    const fixture = await twoZones()
    await fixture.start({ options: { pollIntervalMs: 10_000_000 } })
    const before = await fixture.objects()
    fixture.fake.script.setRules([{ method: 'GetCapacity', effect: { do: 'fail', code: 'INTERNAL' } }])
    await fixture.aVolume('v', GI, 'a')
    await fixture.pass(100)
    const failedFrom = fixture.getCapacityCalls()
    // random() is 0.5, so the backoff is three quarters of 1, 2, 4, 8 seconds.
    const retriesAfter: number[] = []
    for (const ms of [750, 1_500, 3_000, 6_000]) {
      await fixture.pass(ms - 1)
      retriesAfter.push(fixture.getCapacityCalls() - failedFrom)
      await fixture.pass(1)
      retriesAfter.push(fixture.getCapacityCalls() - failedFrom)
    }
    expect(retriesAfter).toEqual([0, 1, 1, 2, 2, 3, 3, 4])
    expect(await fixture.objects()).toEqual(before)
    fixture.fake.script.setRules([])
    await fixture.pass(12_000)
    expect(await fixture.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
  })

  it('CAP-6 does not delay other items when one call fails, and is retried within a poll interval', async () => {
    const fixture = await createCapacityFixture()
    await fixture.aNode('n1', { zone: 'a' })
    for (const name of ['broken', 'fine']) await fixture.aClass(name)
    fixture.fake.script.setRules([{ method: 'GetCapacity', nth: 1, effect: { do: 'fail', code: 'UNAVAILABLE' } }])
    await fixture.start({ options: { pollIntervalMs: 500 } })
    expect(await fixture.summary()).toHaveLength(1)
    await fixture.pass(500)
    expect(await fixture.summary()).toHaveLength(2)
  })

  it('CAP-6 causes an error when it reports a negative capacity', async () => {
    const item = { key: 'fast []', segment: EVERYWHERE, storageClass: { metadata: { name: 'fast' }, provisioner: 'd' } }
    const options = { timeoutMs: 1, signal: new AbortController().signal }
    const answering = (reply: object) => stubDriver({ getCapacity: async () => reply })
    await expect(getCapacity(answering({ availableCapacity: -1n }), item, options)).rejects.toThrow(/-1 bytes/)
    await expect(getCapacity(answering({ maximumVolumeSize: -2n }), item, options)).rejects.toThrow(/-2 bytes/)
    const driver = answering({ availableCapacity: 5n })
    expect(await getCapacity(driver, item, options)).toEqual({ availableBytes: 5n, maximumBytes: undefined })
    expect(driver.capacityAsked[0]?.accessibleTopology).toBeUndefined()
  })
})

describe('a failing API server', () => {
  it('CAP-17 causes few calls while it is unreachable, and everything is published afterwards without a restart', async () => {
    const fixture = await createCapacityFixture()
    for (let i = 0; i < 30; i++)
      await fixture.aNode(`n${i}`, { zone: i % 2 ? 'a' : 'b', host: `h${i}` }, ['zone', 'host'])
    await fixture.aClass('fast')
    const server = switchable(fixture.client)
    const { log, lines } = recordingLog()
    await fixture.start({ around: () => server.client, log, options: { workers: 4 } })
    expect(await fixture.objects()).toHaveLength(30)

    server.off()
    const callsBefore = fixture.getCapacityCalls()
    await fixture.aClass('later')
    for (let second = 0; second < 10; second++) await fixture.pass(1_000)
    expect(fixture.getCapacityCalls()).toBe(callsBefore) // the watch of classes is down
    server.on()
    for (let second = 0; second < 15; second++) await fixture.pass(1_000)
    expect(await fixture.objects()).toHaveLength(60)
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([])
  })

  it('CAP-17 pauses all writes with backoff until one succeeds', async () => {
    const fixture = await createCapacityFixture()
    for (let i = 0; i < 30; i++) await fixture.aNode(`n${i}`, { zone: 'a', host: `h${i}` }, ['zone', 'host'])
    await fixture.aClass('fast')
    let isDown = true
    let tries = 0
    const around = (client: Client): Client => ({
      ...client,
      create: async (kind, ...rest) => {
        tries++
        if (isDown) throw new ApiError(503, 'ServiceUnavailable', 'the server is unavailable')
        return client.create(kind, ...rest)
      },
    })
    const { log, lines } = recordingLog()
    await fixture.start({ around, log, options: { workers: 2 } })
    for (let second = 0; second < 10; second++) await fixture.pass(1_000)
    expect(tries).toBeLessThan(2 * 6)
    expect(lines.filter((line) => line.includes('pausing')).length).toBeLessThan(6)
    isDown = false
    for (let second = 0; second < 20; second++) await fixture.pass(1_000)
    expect(await fixture.objects()).toHaveLength(30)
    expect(lines).toContain('info capacity objects can be written again')
  })

  it('CAP-18 that does not serve capacity objects makes the producer wait, logged once', async () => {
    const fixture = await twoZones({ runtimeConfig: 'storage.k8s.io/v1/csistoragecapacities=false' })
    const { log, lines } = recordingLog()
    await fixture.start({ log })
    for (let minute = 0; minute < 10; minute++) await fixture.pass(60_000)
    expect(lines).toEqual(['info waiting for the API server to serve the kind'])
    expect(fixture.getCapacityCalls()).toBe(0)
  })

  it('CAP-18 that serves capacity objects later makes the producer start', async () => {
    const fixture = await twoZones()
    let isServed = false
    const around = (client: Client): Client => ({
      ...client,
      serves: async (kind) => (kind === capacityKind ? isServed : client.serves(kind)),
    })
    await fixture.start({ around })
    await fixture.pass(60_000)
    expect(await fixture.summary()).toEqual([])
    isServed = true
    await fixture.pass(60_000)
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
  })

  it('CAP-8 receives writes within the rate limit, and all of them eventually', async () => {
    const fixture = await createCapacityFixture()
    for (let i = 0; i < 10; i++) await fixture.aNode(`n${i}`, { zone: 'a', host: `h${i}` }, ['zone', 'host'])
    await fixture.aClass('fast')
    await fixture.start({ options: { writes: { perSecond: 1, burst: 5 } } })
    expect(fixture.writes).toHaveLength(5)
    await fixture.pass(1_000)
    expect(fixture.writes).toHaveLength(6)
    for (let second = 0; second < 4; second++) await fixture.pass(1_000)
    expect(await fixture.objects()).toHaveLength(10)
  })

  it('CAP-8 that rejects one object does not delay the others', async () => {
    const fixture = await createCapacityFixture()
    await fixture.aNode('n1', { zone: 'a' })
    await fixture.aNode('n2', { zone: 'b' })
    await fixture.aClass('fast')
    const around = (client: Client): Client => ({
      ...client,
      create: async (kind, object, ...rest) => {
        if (JSON.stringify(object).includes('"zone":"a"')) throw new ApiError(422, 'Invalid', 'unknown zone')
        return client.create(kind, object, ...rest)
      },
    })
    const { queue } = await fixture.start({ around })
    expect(await fixture.summary()).toEqual(['fast b 4Gi'])
    expect(queue.standing('fast [["zone","a"]]')?.because).toContain('unknown zone')
  })
})
