import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/status-error.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { flakyClient } from '../../runtime/flaky-client.fixture.ts'
import { stubDriver } from '../provisioning/csi/stub-driver.fixture.ts'
import { createCapacityFixture, GI } from './capacity.fixture.ts'
import { capacityKind } from './items.ts'
import { askCapacity } from './report.ts'
import { EVERYWHERE } from './segments.ts'

async function twoZones(server = {}) {
  const trial = await createCapacityFixture({ server })
  await trial.aNode('n1', { zone: 'a' })
  await trial.aNode('n2', { zone: 'b' })
  await trial.aClass('fast')
  return trial
}

function keptLog() {
  const lines: string[] = []
  const keep = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`)
  const log: Logger = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
  return { log, lines }
}

/** A server that can be switched off: requests fail and watches break. */
function switchable(client: Client) {
  const flaky = flakyClient(client)
  const down = new ApiError(503, 'ServiceUnavailable', 'the server is not there')
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

describe('a driver that fails', () => {
  it('CAP-6 keeps its last object after an error and is retried with backoff', async () => {
    const trial = await twoZones()
    await trial.start({ options: { pollIntervalMs: 10_000_000 } })
    const before = await trial.objects()
    trial.fake.script.setRules([{ method: 'GetCapacity', effect: { do: 'fail', code: 'INTERNAL' } }])
    await trial.aVolume('v', GI, 'a')
    await trial.pass(100)
    const failedFrom = trial.asked()
    // Chance is in the middle: three quarters of 1, 2, 4, 8 seconds.
    const askedAfter: number[] = []
    for (const ms of [750, 1_500, 3_000, 6_000]) {
      await trial.pass(ms - 1)
      askedAfter.push(trial.asked() - failedFrom)
      await trial.pass(1)
      askedAfter.push(trial.asked() - failedFrom)
    }
    expect(askedAfter).toEqual([0, 1, 1, 2, 2, 3, 3, 4])
    expect(await trial.objects()).toEqual(before)
    trial.fake.script.setRules([])
    await trial.pass(12_000)
    expect(await trial.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
  })

  it('CAP-6 for one item does not delay the others, and is retried within a poll interval', async () => {
    const trial = await createCapacityFixture()
    await trial.aNode('n1', { zone: 'a' })
    for (const name of ['broken', 'fine']) await trial.aClass(name)
    trial.fake.script.setRules([{ method: 'GetCapacity', nth: 1, effect: { do: 'fail', code: 'UNAVAILABLE' } }])
    await trial.start({ options: { pollIntervalMs: 500 } })
    expect(await trial.summary()).toHaveLength(1)
    await trial.pass(500)
    expect(await trial.summary()).toHaveLength(2)
  })

  it('CAP-6 with a negative capacity counts as an error', async () => {
    const item = { key: 'fast []', segment: EVERYWHERE, storageClass: { metadata: { name: 'fast' }, provisioner: 'd' } }
    const options = { timeoutMs: 1, signal: new AbortController().signal }
    const answering = (reply: object) => stubDriver({ getCapacity: async () => reply })
    await expect(askCapacity(answering({ availableCapacity: -1n }), item, options)).rejects.toThrow(/-1 bytes/)
    await expect(askCapacity(answering({ maximumVolumeSize: -2n }), item, options)).rejects.toThrow(/-2 bytes/)
    const driver = answering({ availableCapacity: 5n })
    expect(await askCapacity(driver, item, options)).toEqual({ availableBytes: 5n, maximumBytes: undefined })
    expect(driver.capacityAsked[0]?.accessibleTopology).toBeUndefined()
  })
})

describe('a server that fails', () => {
  it('CAP-17 causes few calls while it is unreachable, and everything is published afterwards without a restart', async () => {
    const trial = await createCapacityFixture()
    for (let i = 0; i < 30; i++)
      await trial.aNode(`n${i}`, { zone: i % 2 ? 'a' : 'b', host: `h${i}` }, ['zone', 'host'])
    await trial.aClass('fast')
    const server = switchable(trial.client)
    const { log, lines } = keptLog()
    await trial.start({ around: () => server.client, log, options: { workers: 4 } })
    expect(await trial.objects()).toHaveLength(30)

    server.off()
    const asked = trial.asked()
    await trial.aClass('later')
    for (let second = 0; second < 10; second++) await trial.pass(1_000)
    expect(trial.asked()).toBe(asked) // nobody has heard of the class
    server.on()
    for (let second = 0; second < 15; second++) await trial.pass(1_000)
    expect(await trial.objects()).toHaveLength(60)
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([])
  })

  it('CAP-17 pauses all writes with backoff until one succeeds', async () => {
    const trial = await createCapacityFixture()
    for (let i = 0; i < 30; i++) await trial.aNode(`n${i}`, { zone: 'a', host: `h${i}` }, ['zone', 'host'])
    await trial.aClass('fast')
    let isDown = true
    let tries = 0
    const around = (client: Client): Client => ({
      ...client,
      create: async (kind, ...rest) => {
        tries++
        if (isDown) throw new ApiError(503, 'ServiceUnavailable', 'the server is not there')
        return client.create(kind, ...rest)
      },
    })
    const { log, lines } = keptLog()
    await trial.start({ around, log, options: { workers: 2 } })
    for (let second = 0; second < 10; second++) await trial.pass(1_000)
    expect(tries).toBeLessThan(2 * 6)
    expect(lines.filter((line) => line.includes('pausing')).length).toBeLessThan(6)
    isDown = false
    for (let second = 0; second < 20; second++) await trial.pass(1_000)
    expect(await trial.objects()).toHaveLength(30)
    expect(lines).toContain('info capacity objects can be written again')
  })

  it('CAP-18 that does not serve capacity objects makes the producer wait, logged once', async () => {
    const trial = await twoZones({ runtimeConfig: 'storage.k8s.io/v1/csistoragecapacities=false' })
    const { log, lines } = keptLog()
    await trial.start({ log })
    for (let minute = 0; minute < 10; minute++) await trial.pass(60_000)
    expect(lines).toEqual(['info waiting for the API server to serve the kind'])
    expect(trial.asked()).toBe(0)
  })

  it('CAP-18 that serves capacity objects later makes the producer start', async () => {
    const trial = await twoZones()
    let isServed = false
    const around = (client: Client): Client => ({
      ...client,
      serves: async (kind) => (kind === capacityKind ? isServed : client.serves(kind)),
    })
    await trial.start({ around })
    await trial.pass(60_000)
    expect(await trial.summary()).toEqual([])
    isServed = true
    await trial.pass(60_000)
    expect(await trial.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
  })

  it('CAP-8 writes within the rate limit, and writes everything eventually', async () => {
    const trial = await createCapacityFixture()
    for (let i = 0; i < 10; i++) await trial.aNode(`n${i}`, { zone: 'a', host: `h${i}` }, ['zone', 'host'])
    await trial.aClass('fast')
    await trial.start({ options: { writes: { perSecond: 1, burst: 5 } } })
    expect(trial.writes).toHaveLength(5)
    await trial.pass(1_000)
    expect(trial.writes).toHaveLength(6)
    for (let second = 0; second < 4; second++) await trial.pass(1_000)
    expect(await trial.objects()).toHaveLength(10)
  })

  it('CAP-8 that rejects one object does not delay the others', async () => {
    const trial = await createCapacityFixture()
    await trial.aNode('n1', { zone: 'a' })
    await trial.aNode('n2', { zone: 'b' })
    await trial.aClass('fast')
    const around = (client: Client): Client => ({
      ...client,
      create: async (kind, object, ...rest) => {
        if (JSON.stringify(object).includes('"zone":"a"')) throw new ApiError(422, 'Invalid', 'no such zone, please')
        return client.create(kind, object, ...rest)
      },
    })
    const { queue } = await trial.start({ around })
    expect(await trial.summary()).toEqual(['fast b 4Gi'])
    expect(queue.standing('fast [["zone","a"]]')?.because).toContain('no such zone, please')
  })
})
