import { describe, expect, it } from 'vitest'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../csi/gen/csi_pb.js'
import { type CsiDriver, CsiError, isUncertain, serializeCalls } from '../../csi/index.ts'
import { createSimDriver, type SimDriver } from './driver.ts'
import { createProcess } from './process.ts'
import { createSimulation, type Simulation } from './simulation.ts'

const MI = 1024 ** 2
const createRequest = (name: string) => ({
  name,
  capacityRange: { requiredBytes: BigInt(MI) },
  volumeCapabilities: [
    { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: Mode.SINGLE_NODE_WRITER } },
  ],
})

/** Starts a caller that creates volumes and retries until they exist. */
function startVolumeCreator(
  simulation: Simulation,
  driver: SimDriver,
  names: readonly string[],
  wrap = serializeCalls,
) {
  const idsByName = new Map<string, string>()
  const instance = createProcess(simulation, 'caller', (env) => {
    const csi = wrap(driver.driverFor(env))
    const createVolume = async (name: string) => {
      for (;;) {
        try {
          const { volume } = await csi.controller.createVolume(createRequest(name), { timeoutMs: 5_000 })
          if (idsByName.has(name) && idsByName.get(name) !== volume!.volumeId) throw new Error(`${name} has two ids`)
          idsByName.set(name, volume!.volumeId)
          return
        } catch (error) {
          if (!(error instanceof CsiError)) throw error
          await env.clock.sleep(200)
        }
      }
    }
    for (const name of names) void createVolume(name)
  })
  instance.start()
  return { process: instance, idsByName }
}

async function runWithFaults(seed: number) {
  const simulation = createSimulation(seed)
  const random = simulation.random('scenario')
  const driver = createSimDriver(simulation, 'driver')
  const names = Array.from({ length: 12 }, (_, index) => `v${index}`)
  const creator = startVolumeCreator(simulation, driver, names)
  Object.assign(driver.faults, {
    latencyMs: random() * 500,
    loseRequest: random() * 0.3,
    loseReply: random() * 0.3,
    refuse: random() * 0.3,
    slow: random() * 0.3,
    slowMs: 20_000,
  })
  driver.process.crashRate = random() * 0.01
  creator.process.crashRate = random() * 0.02
  for (let i = 0; i < 30; i++) {
    await simulation.runFor(random() * 3_000)
    if (random() < 0.1) driver.process.crash()
    if (random() < 0.5) driver.process.start()
    if (random() < 0.5) creator.process.start()
  }
  driver.heal()
  creator.process.crashRate = 0
  creator.process.start()
  await simulation.runUntil(() => creator.idsByName.size === names.length, {
    withinMs: 600_000,
    waitingFor: 'all volumes',
  })
  return { simulation, driver, creator, names }
}

describe('the simulated driver', () => {
  for (let seed = 1; seed <= 20; seed++) {
    it(`creates each volume once despite lost messages and crashes (seed ${seed})`, async () => {
      const { driver, names } = await runWithFaults(seed)
      const volumes = Object.values(driver.state().volumes)
      expect(volumes.map(({ name }) => name).sort()).toEqual([...names].sort())
      expect(driver.record.overlaps).toEqual([])
    })
  }

  it('SYS-14 repeats a run exactly for the same seed', async () => {
    const firstRun = await runWithFaults(7)
    const secondRun = await runWithFaults(7)
    expect(secondRun.simulation.fingerprint).toBe(firstRun.simulation.fingerprint)
    expect(secondRun.driver.record.calls.length).toBe(firstRun.driver.record.calls.length)
  })

  it("records a caller's concurrent operations on one volume", async () => {
    const simulation = createSimulation(1)
    const driver = createSimDriver(simulation, 'driver')
    driver.script.setRules([{ afterMs: 100 }])
    const withoutSerializing = (csi: CsiDriver) => csi
    const creator = startVolumeCreator(simulation, driver, ['a', 'a'], withoutSerializing)
    await simulation.runUntil(() => creator.idsByName.size === 1, { withinMs: 60_000, waitingFor: 'the volume' })
    expect(driver.record.overlaps[0]).toMatchObject({ volume: 'a', first: { number: 1 }, second: { number: 2 } })
  })

  it('records no overlap for a caller that crashed and restarted during a call', async () => {
    const simulation = createSimulation(1)
    const driver = createSimDriver(simulation, 'driver')
    driver.script.setRules([{ times: 1, effect: { do: 'hang' } }])
    const creator = startVolumeCreator(simulation, driver, ['a'])
    await simulation.runUntil(() => driver.script.hangingCount === 1, { withinMs: 1_000, waitingFor: 'the call' })
    creator.process.crash()
    creator.process.start()
    await simulation.runUntil(() => driver.record.calls.length > 1, { withinMs: 1_000, waitingFor: 'the second call' })
    expect(driver.record.calls[1]?.outcome).toBe('ABORTED')
    driver.script.release()
    await simulation.runUntil(() => creator.idsByName.size === 1, { withinMs: 60_000, waitingFor: 'the volume' })
    expect(driver.record.overlaps).toEqual([])
    expect(Object.keys(driver.state().volumes).length).toBe(1)
  })

  it('keeps its volumes across a crash, and loses them only with its state', async () => {
    const simulation = createSimulation(1)
    const driver = createSimDriver(simulation, 'driver')
    const creator = startVolumeCreator(simulation, driver, ['a'])
    await simulation.runUntil(() => creator.idsByName.size === 1, { withinMs: 60_000, waitingFor: 'the volume' })
    driver.process.crash()
    driver.process.start()
    expect(Object.values(driver.state().volumes).map(({ name }) => name)).toEqual(['a'])
    driver.process.crash()
    driver.loseState()
    driver.process.start()
    expect(driver.state().volumes).toEqual({})
  })

  it('leaves the caller uncertain after a crash during a call, and does not complete the call', async () => {
    const simulation = createSimulation(1)
    const driver = createSimDriver(simulation, 'driver')
    driver.script.setRules([{ effect: { do: 'hang' } }])
    let failure: unknown
    const caller = createProcess(simulation, 'caller', (env) => {
      driver
        .driverFor(env)
        .controller.createVolume(createRequest('a'))
        .catch((error) => {
          failure = error
        })
    })
    caller.start()
    await simulation.runUntil(() => driver.script.hangingCount === 1, { withinMs: 1_000, waitingFor: 'the call' })
    driver.process.crash()
    await simulation.runUntil(() => failure !== undefined, { withinMs: 1_000, waitingFor: 'the failure' })
    expect(isUncertain(failure)).toBe(true)
    driver.process.start()
    driver.script.release()
    await simulation.runFor(60_000)
    expect(driver.state().volumes).toEqual({})
  })
})
