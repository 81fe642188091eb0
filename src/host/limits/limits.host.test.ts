import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import { type HostTrial, startHostTrial } from '../host.fixture.ts'

const MIB = 1024 * 1024
const facts = await probeThisMachine()
const because = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')

const missing = skipReason(facts, ['loop', 'limits'])
// Tried again: a machine that is busy with other tests may be slower than the limit.
describe.skipIf(missing)(`real limits${because(missing)}`, { retry: 2 }, () => {
  let trial: HostTrial
  beforeEach(async () => {
    trial = await startHostTrial()
  })
  afterEach(() => trial.dispose())

  /** Writes to the device past all caches, as a process in the cgroup; gives the seconds it took. */
  async function secondsToWrite(device: string, cgroup: string, options: readonly string[]): Promise<number> {
    const join = `echo $$ > ${cgroup}/cgroup.procs && exec dd if=/dev/zero of=${device} ${options.join(' ')} 2>&1`
    const child = spawn('sh', ['-c', join], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (text) => {
      output += text
    })
    const [code] = await once(child, 'close')
    expect(code, output).toBe(0)
    return Number(/copied, ([\d.e-]+) s/.exec(output)?.[1])
  }

  it('PIO-10 throughput is held within a tenth for a process in its cgroup, before and after a change', async () => {
    const { limits } = trial.host
    const { device } = await trial.device('volume', 64 * MIB)
    const { path, directory } = await trial.cgroup('throughput')
    const write = (count: number) => secondsToWrite(device, directory, ['bs=256k', `count=${count}`, 'oflag=direct'])

    expect(await limits.apply(device, { writeBps: 10 * MIB }, [path])).toMatchObject({ is: 'enforced' })
    expect(await write(80)).toBeCloseToWithin(2, 0.1)
    await limits.apply(device, { writeBps: 20 * MIB }, [path])
    expect(await write(160)).toBeCloseToWithin(2, 0.1)
  })

  it('PIO-10 operations are held within a tenth', async () => {
    const { limits } = trial.host
    const { device } = await trial.device('volume', 16 * MIB)
    const { path, directory } = await trial.cgroup('operations')
    await limits.apply(device, { writeIops: 100 }, [path])
    expect(await secondsToWrite(device, directory, ['bs=4k', 'count=200', 'oflag=direct'])).toBeCloseToWithin(2, 0.1)
  })

  it('PIO-10 lines are found again by a driver that was restarted, and all of them cleared', async () => {
    const { device } = await trial.device('volume', MIB)
    const { path } = await trial.cgroup('restarted')
    await trial.host.limits.apply(device, { readIops: 2 ** 31, writeBps: 5 * MIB }, [path])
    const restarted = await startHostTrial()
    try {
      expect(await restarted.host.limits.inForce(device)).toContainEqual({
        cgroup: path,
        limit: { readIops: 2 ** 31, writeBps: 5 * MIB },
      })
      await restarted.host.limits.clear(device)
      expect(await trial.host.limits.inForce(device)).toEqual([])
    } finally {
      await restarted.dispose()
    }
  })

  it('PIO-10 the next volume on a loop number does not inherit limits', async () => {
    const { limits, loops } = trial.host
    const { file, device } = await trial.device('volume', MIB)
    const { path } = await trial.cgroup('inherited')
    await limits.apply(device, { writeBps: MIB }, [path])
    await loops.detach(device, { file })
    expect(await limits.inForce(device)).toEqual([])
  })

  it('PIO-10 a cgroup that goes away meanwhile is no failure', async () => {
    const { limits } = trial.host
    const { device } = await trial.device('volume', MIB)
    const { path } = await trial.cgroup('stays')
    expect(await limits.apply(device, { writeBps: MIB }, [path, '/stowage-trial-gone'])).toMatchObject({
      is: 'enforced',
    })
    await limits.clear(device)
  })

  const notV1 = skipReason(facts, ['limitsV1'])
  it.skipIf(notV1)(`PIO-10 buffered writes are held too, as the root has the line${because(notV1)}`, async () => {
    const { limits } = trial.host
    const { device } = await trial.device('volume', 64 * MIB)
    const { path, directory } = await trial.cgroup('buffered')
    await limits.apply(device, { writeBps: 10 * MIB }, [path])
    expect(await limits.inForce(device)).toEqual(
      expect.arrayContaining([
        { cgroup: '/', limit: { writeBps: 10 * MIB } },
        { cgroup: path, limit: { writeBps: 10 * MIB } },
      ]),
    )
    const seconds = await secondsToWrite(device, directory, ['bs=1M', 'count=20', 'conv=fsync'])
    expect(seconds).toBeCloseToWithin(2, 0.1)
  })

  const notV2 = skipReason(facts, ['limitsV2'])
  it.skipIf(notV2)(`PIO-10 two cgroups share one bucket in the cgroup above them${because(notV2)}`, async () => {
    const { limits } = trial.host
    const { device } = await trial.device('volume', 64 * MIB)
    const { path } = await trial.cgroup('shared')
    const one = await trial.cgroup('shared/one')
    const two = await trial.cgroup('shared/two')
    expect(await limits.apply(device, { writeBps: 10 * MIB }, [one.path, two.path])).toMatchObject({ cgroups: [path] })
    const write = (cgroup: string) => secondsToWrite(device, cgroup, ['bs=256k', 'count=40', 'oflag=direct'])
    const [first, second] = await Promise.all([write(one.directory), write(two.directory)])
    expect(Math.max(first, second)).toBeCloseToWithin(2, 0.1)
  })
})

declare module 'vitest' {
  interface Matchers<T> {
    /** Within this part of the expected number, above or below. */
    toBeCloseToWithin(expected: number, part: number): T
  }
}

expect.extend({
  toBeCloseToWithin(received: number, expected: number, part: number) {
    const off = Math.abs(received - expected) / expected
    return {
      pass: off <= part,
      message: () => `${received} is ${(off * 100).toFixed(0)} % off ${expected}; ${part * 100} % are allowed`,
    }
  },
})
