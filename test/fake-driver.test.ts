// Tests the fake CSI driver as a process with sockets, as the tests of the whole system use it.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { realpath } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../src/csi/gen/csi_pb.js'
import { type CsiConnection, connectDriver, readDriverFacts, waitUntilReady } from '../src/csi/index.ts'
import { buildProgram } from './helpers/build-program.ts'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'

let fake: RunningFakeDriver
let driver: CsiConnection
beforeAll(async () => {
  fake = await startFakeDriver({ flags: ['--without', 'CLONE_VOLUME', '--topology', 'zone=a', '--topology', 'zone=b'] })
  driver = connectDriver({ address: fake.endpoint, clock: systemClock(), log: silentLog })
})
afterAll(async () => {
  driver?.close()
  await fake?.remove()
})

const waitForDriver = () =>
  waitUntilReady(driver, { clock: systemClock(), log: silentLog, signal: AbortSignal.timeout(20_000) })
const request = (name: string) => ({
  name,
  volumeCapabilities: [
    { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: Mode.SINGLE_NODE_WRITER } },
  ],
  secrets: { password: 'hunter2' },
})
const listVolumeNames = async () => Object.values((await fake.control.inspect()).state.volumes).map(({ name }) => name)

describe('fake driver process', () => {
  it('reports the capabilities and the topology of its flags', async () => {
    await waitForDriver()
    const facts = await readDriverFacts(driver)
    expect(facts.plugin).toContain('VOLUME_ACCESSIBILITY_CONSTRAINTS')
    expect(facts.controller).toContain('CREATE_DELETE_VOLUME')
    expect(facts.controller).not.toContain('CLONE_VOLUME')
    expect((await driver.node.nodeGetInfo({})).accessibleTopology?.segments).toEqual({ zone: 'a' })
  })

  it('records calls without secrets', async () => {
    await driver.controller.createVolume(request('kept'))
    const { calls } = await fake.control.inspect()
    expect(calls.at(-1)).toMatchObject({
      method: 'CreateVolume',
      volume: 'kept',
      secretKeys: ['password'],
      outcome: 'OK',
    })
    expect(JSON.stringify(calls)).not.toContain('hunter2')
  })

  it('keeps its volumes across a kill, and starts without volumes after its state was removed', async () => {
    await fake.kill()
    await fake.start()
    await waitForDriver()
    expect(await listVolumeNames()).toEqual(['kept'])
    await fake.kill()
    await fake.loseState()
    await fake.start()
    await waitForDriver()
    expect(await listVolumeNames()).toEqual([])
  })

  it('can crash between the operation and the response', async () => {
    await fake.control.setRules([{ method: 'CreateVolume', effect: { do: 'crash', when: 'after' } }])
    await expect(driver.controller.createVolume(request('a'))).rejects.toMatchObject({ codeName: 'UNAVAILABLE' })
    await fake.whenExited()
    await fake.start()
    await waitForDriver()
    expect(await listVolumeNames()).toEqual(['a'])
  })

  it('can hang until it is released', async () => {
    await fake.control.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    const creation = driver.controller.createVolume(request('slow'))
    await expect.poll(async () => (await fake.control.inspect()).hangingCount).toBe(1)
    expect(await listVolumeNames()).not.toContain('slow')
    await fake.control.release()
    expect((await creation).volume?.volumeId).toMatch(/^vol-/)
  })

  it('can report outdated capacity', async () => {
    await fake.control.setRules([])
    const getFreeCapacity = async () => (await driver.controller.getCapacity({})).availableCapacity
    await fake.control.freezeCapacity()
    const freeBefore = await getFreeCapacity()
    await driver.controller.createVolume(request('more'))
    expect(await getFreeCapacity()).toBe(freeBefore)
    await fake.control.unfreezeCapacity()
    expect(await getFreeCapacity()).toBe(freeBefore - 1024n ** 3n)
  })

  it('survives callers that disconnect before the response', async () => {
    const socket = connect(join(dirname(new URL(fake.endpoint).pathname), 'control.sock'))
    await once(socket, 'connect')
    const requests = `${JSON.stringify({ do: 'inspect' })}\n`.repeat(2_000)
    await new Promise((resolve) => socket.write(requests, resolve))
    socket.destroy()
    for (let i = 0; i < 3; i++) expect((await fake.control.inspect()).hangingCount).toBe(0)
    await waitForDriver()
  })

  it('prints its usage', async () => {
    const program = join(dirname(await realpath(await buildProgram())), 'fake-driver.js')
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--help'])
    expect(stdout).toMatch(/^fake-driver: an in-memory CSI driver for tests/)
    expect(stdout).toContain('--endpoint')
  })

  it('rejects an invalid flag with the reason', async () => {
    await expect(startFakeDriver({ flags: ['--capacity', 'lots'] })).rejects.toThrow(
      /did not start.*"lots" is not a size/,
    )
  })
})
