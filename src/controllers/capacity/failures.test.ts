// Tests the capacity producer with a failing driver, and with an API server that fails, limits or rejects writes.
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/status-error.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createFlakyClient } from '../../runtime/flaky-client.fixture.ts'
import { createStubDriver } from '../provisioning/csi/stub-driver.fixture.ts'
import { createCapacityFixture, GI } from './capacity.fixture.ts'
import { getCapacity } from './get-capacity.ts'
import { capacityKind } from './items.ts'
import { ALL_NODES } from './segments.ts'

async function createFixtureWithTwoZones(server = {}) {
  const fixture = await createCapacityFixture({ server })
  await fixture.createNode('n1', { zone: 'a' })
  await fixture.createNode('n2', { zone: 'b' })
  await fixture.createClass('fast')
  return fixture
}

function createRecordingLog() {
  const lines: string[] = []
  const record = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`)
  const log: Logger = { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') }
  return { log, lines }
}

/** Returns a client of a server that can be stopped. Writes, lists and watches then fail. */
function createSwitchableServer(client: Client) {
  const flakyClient = createFlakyClient(client)
  const outage = new ApiError(503, 'ServiceUnavailable', 'the server is unavailable')
  let isDown = false
  const throwIfDown = () => {
    if (isDown) throw outage
  }
  const switchableClient: Client = {
    ...flakyClient,
    watch: (...args) => flakyClient.watch(...args),
    create: async (...args) => {
      throwIfDown()
      return client.create(...args)
    },
    patch: async (...args) => {
      throwIfDown()
      return client.patch(...args)
    },
    delete: async (...args) => {
      throwIfDown()
      return client.delete(...args)
    },
    serves: async (kind) => {
      throwIfDown()
      return client.serves(kind)
    },
  }
  return {
    client: switchableClient,
    stop() {
      isDown = true
      flakyClient.watchError = outage
      flakyClient.listError = outage
      flakyClient.cutStreams(outage)
    },
    start() {
      isDown = false
      flakyClient.watchError = undefined
      flakyClient.listError = undefined
    },
  }
}

describe('a failing driver', () => {
  it('CAP-6 leaves the published objects unchanged and is retried with backoff', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.start({ options: { pollIntervalMs: 10_000_000 } })
    const objectsBefore = await fixture.objects()
    fixture.fake.script.setRules([{ method: 'GetCapacity', effect: { do: 'fail', code: 'INTERNAL' } }])
    await fixture.createVolume('v', GI, 'a')
    await fixture.advance(100)
    const callsBefore = fixture.countGetCapacityCalls()
    // random() is 0.5, so the backoff is three quarters of 1, 2, 4, 8 seconds.
    const retriesAfter: number[] = []
    for (const ms of [750, 1_500, 3_000, 6_000]) {
      await fixture.advance(ms - 1)
      retriesAfter.push(fixture.countGetCapacityCalls() - callsBefore)
      await fixture.advance(1)
      retriesAfter.push(fixture.countGetCapacityCalls() - callsBefore)
    }
    expect(retriesAfter).toEqual([0, 1, 1, 2, 2, 3, 3, 4])
    expect(await fixture.objects()).toEqual(objectsBefore)
    fixture.fake.script.setRules([])
    await fixture.advance(12_000)
    expect(await fixture.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
  })

  it('CAP-6 does not delay other items if one call fails, and is retried within a poll interval', async () => {
    const fixture = await createCapacityFixture()
    await fixture.createNode('n1', { zone: 'a' })
    for (const name of ['broken', 'fine']) await fixture.createClass(name)
    fixture.fake.script.setRules([{ method: 'GetCapacity', nth: 1, effect: { do: 'fail', code: 'UNAVAILABLE' } }])
    await fixture.start({ options: { pollIntervalMs: 500 } })
    expect(await fixture.summary()).toHaveLength(1)
    await fixture.advance(500)
    expect(await fixture.summary()).toHaveLength(2)
  })

  it('causes an error if it reports a negative capacity', async () => {
    const item = { key: 'fast []', segment: ALL_NODES, storageClass: { metadata: { name: 'fast' }, provisioner: 'd' } }
    const options = { timeoutMs: 1, signal: new AbortController().signal }
    const aDriverThatReturns = (reply: object) => createStubDriver({ getCapacity: async () => reply })
    await expect(getCapacity(aDriverThatReturns({ availableCapacity: -1n }), item, options)).rejects.toThrow(/-1 bytes/)
    await expect(getCapacity(aDriverThatReturns({ maximumVolumeSize: -2n }), item, options)).rejects.toThrow(/-2 bytes/)
    const driver = aDriverThatReturns({ availableCapacity: 5n })
    expect(await getCapacity(driver, item, options)).toEqual({ availableBytes: 5n, maximumBytes: undefined })
    expect(driver.capacityRequests[0]?.accessibleTopology).toBeUndefined()
  })
})

describe('the producer', () => {
  it('CAP-17 makes no GetCapacity calls while the server is down, and publishes all objects when it is up again', async () => {
    const fixture = await createCapacityFixture()
    for (let i = 0; i < 30; i++)
      await fixture.createNode(`n${i}`, { zone: i % 2 ? 'a' : 'b', host: `h${i}` }, ['zone', 'host'])
    await fixture.createClass('fast')
    const server = createSwitchableServer(fixture.client)
    const { log, lines } = createRecordingLog()
    await fixture.start({ wrapClient: () => server.client, log, options: { workers: 4 } })
    expect(await fixture.objects()).toHaveLength(30)

    server.stop()
    const callsBefore = fixture.countGetCapacityCalls()
    await fixture.createClass('later')
    for (let second = 0; second < 10; second++) await fixture.advance(1_000)
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore) // the watch of classes is down
    server.start()
    for (let second = 0; second < 15; second++) await fixture.advance(1_000)
    expect(await fixture.objects()).toHaveLength(60)
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([])
  })

  it('CAP-17 pauses all writes with backoff after a failure of the server, until one succeeds', async () => {
    const fixture = await createCapacityFixture()
    for (let i = 0; i < 30; i++) await fixture.createNode(`n${i}`, { zone: 'a', host: `h${i}` }, ['zone', 'host'])
    await fixture.createClass('fast')
    let isDown = true
    let attempts = 0
    const wrapClient = (client: Client): Client => ({
      ...client,
      create: async (kind, ...args) => {
        attempts++
        if (isDown) throw new ApiError(503, 'ServiceUnavailable', 'the server is unavailable')
        return client.create(kind, ...args)
      },
    })
    const { log, lines } = createRecordingLog()
    await fixture.start({ wrapClient, log, options: { workers: 2 } })
    for (let second = 0; second < 10; second++) await fixture.advance(1_000)
    expect(attempts).toBeLessThan(2 * 6)
    expect(lines.filter((line) => line.includes('pausing')).length).toBeLessThan(6)
    isDown = false
    for (let second = 0; second < 20; second++) await fixture.advance(1_000)
    expect(await fixture.objects()).toHaveLength(30)
    expect(lines).toContain('info capacity objects can be written again')
  })

  it('SYS-15 waits, with one log line, if the server does not serve capacity objects', async () => {
    const fixture = await createFixtureWithTwoZones({ runtimeConfig: 'storage.k8s.io/v1/csistoragecapacities=false' })
    const { log, lines } = createRecordingLog()
    await fixture.start({ log })
    for (let minute = 0; minute < 10; minute++) await fixture.advance(60_000)
    expect(lines).toEqual(['info waiting for the API server to serve the kind'])
    expect(fixture.countGetCapacityCalls()).toBe(0)
  })

  it('SYS-15 starts when the server begins to serve capacity objects', async () => {
    const fixture = await createFixtureWithTwoZones()
    let isServed = false
    const wrapClient = (client: Client): Client => ({
      ...client,
      serves: async (kind) => (kind === capacityKind ? isServed : client.serves(kind)),
    })
    await fixture.start({ wrapClient })
    await fixture.advance(60_000)
    expect(await fixture.summary()).toEqual([])
    isServed = true
    await fixture.advance(60_000)
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
  })

  it('sends all writes within the rate limit', async () => {
    const fixture = await createCapacityFixture()
    for (let i = 0; i < 10; i++) await fixture.createNode(`n${i}`, { zone: 'a', host: `h${i}` }, ['zone', 'host'])
    await fixture.createClass('fast')
    await fixture.start({ options: { writeRateLimit: { perSecond: 1, burst: 5 } } })
    expect(fixture.writes).toHaveLength(5)
    await fixture.advance(1_000)
    expect(fixture.writes).toHaveLength(6)
    for (let second = 0; second < 4; second++) await fixture.advance(1_000)
    expect(await fixture.objects()).toHaveLength(10)
  })

  it('writes the other objects without delay if the server rejects one', async () => {
    const fixture = await createCapacityFixture()
    await fixture.createNode('n1', { zone: 'a' })
    await fixture.createNode('n2', { zone: 'b' })
    await fixture.createClass('fast')
    const wrapClient = (client: Client): Client => ({
      ...client,
      create: async (kind, object, ...args) => {
        if (JSON.stringify(object).includes('"zone":"a"')) throw new ApiError(422, 'Invalid', 'unknown zone')
        return client.create(kind, object, ...args)
      },
    })
    const { queue } = await fixture.start({ wrapClient })
    expect(await fixture.summary()).toEqual(['fast b 4Gi'])
    expect(queue.stateOf('fast [["zone","a"]]')?.message).toContain('unknown zone')
  })
})
