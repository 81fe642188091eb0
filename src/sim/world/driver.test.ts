import { describe, expect, it } from 'vitest'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../csi/gen/csi_pb.js'
import { type CsiDriver, CsiError, isUncertain, serializeCalls } from '../../csi/index.ts'
import { createSimDriver, type SimDriver } from './driver.ts'
import { createProcess } from './process.ts'
import { createWorld, type World } from './world.ts'

const MI = 1024 ** 2
const request = (name: string) => ({
  name,
  capacityRange: { requiredBytes: BigInt(MI) },
  volumeCapabilities: [
    { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: Mode.SINGLE_NODE_WRITER } },
  ],
})

/** A caller that wants some volumes, tries until it has them, and may die at any await. */
function volumeMaker(world: World, driver: SimDriver, names: readonly string[], wrap = serializeCalls) {
  const has = new Map<string, string>()
  const process = createProcess(world, 'caller', (env) => {
    const csi = wrap(driver.driverFor(env))
    const make = async (name: string) => {
      for (;;) {
        try {
          const { volume } = await csi.controller.createVolume(request(name), { timeoutMs: 5_000 })
          if (has.has(name) && has.get(name) !== volume!.volumeId) throw new Error(`${name} has two ids`)
          has.set(name, volume!.volumeId)
          return
        } catch (error) {
          if (!(error instanceof CsiError)) throw error
          await env.clock.sleep(200)
        }
      }
    }
    for (const name of names) void make(name)
  })
  process.start()
  return { process, has }
}

async function badDay(seed: number) {
  const world = createWorld(seed)
  const random = world.random('scenario')
  const driver = createSimDriver(world, 'driver')
  const names = Array.from({ length: 12 }, (_, at) => `v${at}`)
  const maker = volumeMaker(world, driver, names)
  Object.assign(driver.faults, {
    latencyMs: random() * 500,
    loseRequest: random() * 0.3,
    loseReply: random() * 0.3,
    refuse: random() * 0.3,
    slow: random() * 0.3,
    slowMs: 20_000,
  })
  driver.process.crashRate = random() * 0.01
  maker.process.crashRate = random() * 0.02
  for (let i = 0; i < 30; i++) {
    await world.runFor(random() * 3_000)
    if (random() < 0.1) driver.process.crash()
    if (random() < 0.5) driver.process.start()
    if (random() < 0.5) maker.process.start()
  }
  driver.heal()
  maker.process.crashRate = 0
  maker.process.start()
  await world.runUntil(() => maker.has.size === names.length, { withinMs: 600_000, waitingFor: 'all volumes' })
  return { world, driver, maker, names }
}

describe('a driver in the world', () => {
  for (let seed = 1; seed <= 20; seed++) {
    it(`SYS-14 makes each volume once, whatever is lost or dies (seed ${seed})`, async () => {
      const { driver, names } = await badDay(seed)
      const held = Object.values(driver.state().volumes)
      expect(held.map(({ name }) => name).sort()).toEqual([...names].sort())
      expect(driver.record.overlaps).toEqual([])
    })
  }

  it('SYS-14 gives the same run for the same seed', async () => {
    const [one, two] = [await badDay(7), await badDay(7)]
    expect(two.world.fingerprint).toBe(one.world.fingerprint)
    expect(two.driver.record.calls.length).toBe(one.driver.record.calls.length)
  })

  it('SYS-14 convicts a caller that runs two operations of one volume at once', async () => {
    const world = createWorld(1)
    const driver = createSimDriver(world, 'driver')
    driver.script.setRules([{ afterMs: 100 }])
    const unguarded = (csi: CsiDriver) => csi
    const maker = volumeMaker(world, driver, ['a', 'a'], unguarded)
    await world.runUntil(() => maker.has.size === 1, { withinMs: 60_000, waitingFor: 'the volume' })
    expect(driver.record.overlaps[0]).toMatchObject({ volume: 'a', first: { number: 1 }, second: { number: 2 } })
  })

  it('SYS-14 does not report a caller that died and came back while the driver was still at work', async () => {
    const world = createWorld(1)
    const driver = createSimDriver(world, 'driver')
    driver.script.setRules([{ times: 1, effect: { do: 'hang' } }])
    const maker = volumeMaker(world, driver, ['a'])
    await world.runUntil(() => driver.script.hanging === 1, { withinMs: 1_000, waitingFor: 'the call' })
    maker.process.crash()
    maker.process.start()
    await world.runUntil(() => driver.record.calls.length > 1, { withinMs: 1_000, waitingFor: 'the second call' })
    expect(driver.record.calls[1]?.outcome).toBe('ABORTED')
    driver.script.release()
    await world.runUntil(() => maker.has.size === 1, { withinMs: 60_000, waitingFor: 'the volume' })
    expect(driver.record.overlaps).toEqual([])
    expect(Object.keys(driver.state().volumes).length).toBe(1)
  })

  it('SYS-14 keeps what its storage holds over a crash, and loses it only when told', async () => {
    const world = createWorld(1)
    const driver = createSimDriver(world, 'driver')
    const maker = volumeMaker(world, driver, ['a'])
    await world.runUntil(() => maker.has.size === 1, { withinMs: 60_000, waitingFor: 'the volume' })
    driver.process.crash()
    driver.process.start()
    expect(Object.values(driver.state().volumes).map(({ name }) => name)).toEqual(['a'])
    driver.process.crash()
    driver.loseState()
    driver.process.start()
    expect(driver.state().volumes).toEqual({})
  })

  it('SYS-14 that dies in the middle of a call leaves its caller uncertain, and never finishes it', async () => {
    const world = createWorld(1)
    const driver = createSimDriver(world, 'driver')
    driver.script.setRules([{ effect: { do: 'hang' } }])
    let failure: unknown
    const caller = createProcess(world, 'caller', (env) => {
      driver
        .driverFor(env)
        .controller.createVolume(request('a'))
        .catch((error) => {
          failure = error
        })
    })
    caller.start()
    await world.runUntil(() => driver.script.hanging === 1, { withinMs: 1_000, waitingFor: 'the call' })
    driver.process.crash()
    await world.runUntil(() => failure !== undefined, { withinMs: 1_000, waitingFor: 'the failure' })
    expect(isUncertain(failure)).toBe(true)
    driver.process.start()
    driver.script.release()
    await world.runFor(60_000)
    expect(driver.state().volumes).toEqual({})
  })
})
