import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import { type HostFixture, startHostFixture } from '../host.fixture.ts'
import { watchCgroups } from './watch-cgroups.ts'

const MIB = 1024 * 1024
const facts = await probeThisMachine()
const skipNote = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')

const hostSkip = skipReason(facts, ['loop', 'limits'])
// Retried, because a computer that is busy with other tests may be slower than the limit.
describe.skipIf(hostSkip)(`real limits${skipNote(hostSkip)}`, { retry: 2 }, () => {
  let fixture: HostFixture
  beforeEach(async () => {
    fixture = await startHostFixture()
  })
  afterEach(() => fixture.dispose())

  /** Runs dd in the cgroup to write to the device, and returns the seconds that it took. */
  async function secondsToWrite(device: string, cgroup: string, options: readonly string[]): Promise<number> {
    const command = `echo $$ > ${cgroup}/cgroup.procs && exec dd if=/dev/zero of=${device} ${options.join(' ')} 2>&1`
    const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (text) => {
      output += text
    })
    const [code] = await once(child, 'close')
    expect(code, output).toBe(0)
    return Number(/copied, ([\d.e-]+) s/.exec(output)?.[1])
  }

  it('PIO-10 limit throughput within 10 %, before and after a change', async () => {
    const { limits } = fixture.host
    const { device } = await fixture.device('volume', 64 * MIB)
    const { path, directory } = await fixture.cgroup('throughput')
    const write = (count: number) => secondsToWrite(device, directory, ['bs=256k', `count=${count}`, 'oflag=direct'])

    expect(await limits.apply(device, { writeBps: 10 * MIB }, [path])).toMatchObject({ is: 'enforced' })
    expect(await write(80)).toBeCloseToWithin(2, 0.1)
    await limits.apply(device, { writeBps: 20 * MIB }, [path])
    expect(await write(160)).toBeCloseToWithin(2, 0.1)
  })

  it('PIO-10 limit iops within 10 %', async () => {
    const { limits } = fixture.host
    const { device } = await fixture.device('volume', 16 * MIB)
    const { path, directory } = await fixture.cgroup('operations')
    await limits.apply(device, { writeIops: 100 }, [path])
    expect(await secondsToWrite(device, directory, ['bs=4k', 'count=200', 'oflag=direct'])).toBeCloseToWithin(2, 0.1)
  })

  it('PIO-10 are found and cleared by a restarted driver', async () => {
    const { device } = await fixture.device('volume', MIB)
    const { path } = await fixture.cgroup('restarted')
    await fixture.host.limits.apply(device, { readIops: 2 ** 31, writeBps: 5 * MIB }, [path])
    const restartedFixture = await startHostFixture()
    try {
      expect(await restartedFixture.host.limits.appliedLimits(device)).toContainEqual({
        cgroup: path,
        limit: { readIops: 2 ** 31, writeBps: 5 * MIB },
      })
      await restartedFixture.host.limits.clear(device)
      expect(await fixture.host.limits.appliedLimits(device)).toEqual([])
    } finally {
      await restartedFixture.dispose()
    }
  })

  it('PIO-10 are cleared when the device is detached, so that the next volume does not inherit them', async () => {
    const { limits, loops } = fixture.host
    const { file, device } = await fixture.device('volume', MIB)
    const { path } = await fixture.cgroup('inherited')
    await limits.apply(device, { writeBps: MIB }, [path])
    await loops.detach(device, { file })
    expect(await limits.appliedLimits(device)).toEqual([])
  })

  it('PIO-10 reach a cgroup that is created later, which the kernel reports on the real hierarchy', async () => {
    const { limits } = fixture.host
    const { device } = await fixture.device('volume', MIB)
    const { path, directory } = await fixture.cgroup('pod')
    let reportCreated = () => {}
    const whenCreated = new Promise<void>((resolve) => {
      reportCreated = resolve
    })
    const watch = await watchCgroups(directory, reportCreated)
    try {
      expect(watch).toBeDefined()
      const container = await fixture.cgroup('pod/container')
      await whenCreated
      await limits.apply(device, { writeBps: MIB }, [path, container.path])
      const limitedCgroups = (await limits.appliedLimits(device)).map(({ cgroup }) => cgroup)
      expect(limitedCgroups.some((cgroup) => container.path.startsWith(cgroup))).toBe(true)
    } finally {
      watch?.close()
    }
  })

  it('PIO-10 ignore a cgroup that does not exist', async () => {
    const { limits } = fixture.host
    const { device } = await fixture.device('volume', MIB)
    const { path } = await fixture.cgroup('stays')
    expect(await limits.apply(device, { writeBps: MIB }, [path, '/stowage-test-gone'])).toMatchObject({
      is: 'enforced',
    })
    await limits.clear(device)
  })

  const v1Skip = skipReason(facts, ['limitsV1'])
  it.skipIf(v1Skip)(
    `PIO-10 apply to buffered writes, because they are also set on the root cgroup${skipNote(v1Skip)}`,
    async () => {
      const { limits } = fixture.host
      const { device } = await fixture.device('volume', 64 * MIB)
      const { path, directory } = await fixture.cgroup('buffered')
      await limits.apply(device, { writeBps: 10 * MIB }, [path])
      expect(await limits.appliedLimits(device)).toEqual(
        expect.arrayContaining([
          { cgroup: '/', limit: { writeBps: 10 * MIB } },
          { cgroup: path, limit: { writeBps: 10 * MIB } },
        ]),
      )
      const seconds = await secondsToWrite(device, directory, ['bs=1M', 'count=20', 'conv=fsync'])
      expect(seconds).toBeCloseToWithin(2, 0.1)
    },
  )

  const v2Skip = skipReason(facts, ['limitsV2'])
  it.skipIf(v2Skip)(`PIO-10 are shared by two cgroups with a common parent${skipNote(v2Skip)}`, async () => {
    const { limits } = fixture.host
    const { device } = await fixture.device('volume', 64 * MIB)
    const { path } = await fixture.cgroup('shared')
    const firstCgroup = await fixture.cgroup('shared/one')
    const secondCgroup = await fixture.cgroup('shared/two')
    expect(await limits.apply(device, { writeBps: 10 * MIB }, [firstCgroup.path, secondCgroup.path])).toMatchObject({
      cgroups: [path],
    })
    const write = (cgroup: string) => secondsToWrite(device, cgroup, ['bs=256k', 'count=40', 'oflag=direct'])
    const [firstSeconds, secondSeconds] = await Promise.all([
      write(firstCgroup.directory),
      write(secondCgroup.directory),
    ])
    expect(Math.max(firstSeconds, secondSeconds)).toBeCloseToWithin(2, 0.1)
  })
})

declare module 'vitest' {
  interface Matchers<T> {
    /** Passes if the number is within this fraction of the expected one. */
    toBeCloseToWithin(expected: number, tolerance: number): T
  }
}

expect.extend({
  toBeCloseToWithin(received: number, expected: number, tolerance: number) {
    const deviation = Math.abs(received - expected) / expected
    return {
      pass: deviation <= tolerance,
      message: () =>
        `${received} is ${(deviation * 100).toFixed(0)} % off ${expected}; the tolerance is ${tolerance * 100} %`,
    }
  },
})
