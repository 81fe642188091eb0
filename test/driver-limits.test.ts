// Tests IO limits: processes in a cgroup write as fast as they can, and the counters of the device give the rate before and
// after the limit changes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DriverFixture, MIB, startDriverFixture } from '../src/driver/driver.fixture.ts'
import type { VolumeId } from '../src/driver/ids.ts'
import { imagePathOf } from '../src/driver/pool/pool-layout.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const facts = await probeThisMachine()
const skipMessage = skipReason(facts, ['loop', 'mount', 'xfs', 'limits'])

/** The kernel grants IO in slices of 100 ms, which are negligible over this time. */
const WINDOW_MS = 3_000
/** Requests that were queued under the old limit complete within this time. */
const LIMIT_CHANGE_DELAY_MS = 700
const TOLERANCE = 0.1

// Retries, because a busy machine may be slower than the limit.
describe.skipIf(skipMessage)(`limits${skipMessage ? ` (${skipMessage})` : ''}`, { retry: 3 }, () => {
  let fixture: DriverFixture
  let volumeCount = 0
  let cgroup: { readonly path: string; readonly directory: string }
  beforeAll(async () => {
    fixture = await startDriverFixture({ backend: 'loop' })
    cgroup = await fixture.machine.cgroup('limited')
  })
  afterAll(() => fixture?.dispose())

  it.each([
    {
      workload: 'direct writes',
      key: 'throughput',
      load: 'dd if=/dev/zero of=$F bs=1M count=32 oflag=direct conv=notrunc',
    },
    {
      workload: 'buffered writes with sync',
      key: 'throughput',
      load: 'dd if=/dev/zero of=$F bs=1M count=5 conv=notrunc,fsync',
    },
    {
      workload: 'direct writes',
      key: 'iops',
      load: 'dd if=/dev/zero of=$F bs=4k count=4096 oflag=direct conv=notrunc',
    },
  ] as const)('PIO-10 enforces $key within 10 % for $workload, and changes it under load', async ({ key, load }) => {
    const [initialLimit, changedLimit] = key === 'iops' ? [100, 250] : [10, 25]
    const { id, path } = await fixture.use(`limited-${++volumeCount}`, {
      mutableParameters: { [key]: String(initialLimit) },
    })
    await fixture.runningDriver.setWorkloadCgroups(id as VolumeId, [cgroup.path])
    expect(await readCondition(id)).toMatch(/ are enforced/)

    const writer = startWriters(cgroup.directory, join(path, 'file'), load)
    try {
      await expectRate(id, key, initialLimit)
      await fixture.csi.controller.controllerModifyVolume({
        volumeId: id,
        mutableParameters: { [key]: String(changedLimit) },
      })
      await expectRate(id, key, changedLimit)
    } finally {
      await killProcessGroup(writer, cgroup.directory)
    }
    const device = await findDevice(id)
    await fixture.unpublish(id)
    await fixture.unstage(id)
    expect(await fixture.machine.host.limits.appliedLimits(device)).toEqual([])
    await fixture.remove(id)
  })

  it('PIO-10 removes a limit immediately, and restores the remaining one after a restart', async () => {
    const { id } = await fixture.use(`restored-${++volumeCount}`, {
      mutableParameters: { iops: '100', throughput: '10' },
    })
    await fixture.runningDriver.setWorkloadCgroups(id as VolumeId, [cgroup.path])
    const device = await findDevice(id)
    const readLimits = async () => (await fixture.machine.host.limits.appliedLimits(device)).map(({ limit }) => limit)
    const bothLimits = { readIops: 100, writeIops: 100, readBps: 10 * MIB, writeBps: 10 * MIB }
    for (const line of await readLimits()) expect(line).toEqual(bothLimits)
    await fixture.csi.controller.controllerModifyVolume({ volumeId: id, mutableParameters: { iops: '0' } })
    for (const line of await readLimits()) expect(line).toEqual({ readBps: 10 * MIB, writeBps: 10 * MIB })
    await fixture.restart()
    await fixture.runningDriver.setWorkloadCgroups(id as VolumeId, [cgroup.path])
    expect(await readLimits()).not.toEqual([])
    for (const line of await readLimits()) expect(line).toEqual({ readBps: 10 * MIB, writeBps: 10 * MIB })
    await fixture.unpublish(id)
    await fixture.unstage(id)
    await fixture.remove(id)
  })

  const readCondition = async (volumeId: string) =>
    (await fixture.csi.controller.controllerGetVolume({ volumeId })).status!.volumeCondition!.message

  async function findDevice(id: string): Promise<string> {
    const [device] = await fixture.machine.host.loops.findByFile(imagePathOf(fixture.pool, id as VolumeId))
    return device!.device
  }

  async function expectRate(id: string, key: 'iops' | 'throughput', limit: number): Promise<void> {
    const device = await findDevice(id)
    await pause(LIMIT_CHANGE_DELAY_MS)
    const readCounter = async () => {
      const { totals } = (await fixture.machine.host.counters.read(device))!
      return { atMs: performance.now(), amount: key === 'iops' ? totals.writes : totals.writtenBytes / MIB }
    }
    const firstReading = await readCounter()
    await pause(WINDOW_MS)
    const lastReading = await readCounter()
    const rate = ((lastReading.amount - firstReading.amount) * 1_000) / (lastReading.atMs - firstReading.atMs)
    expect(rate, `${key} with a limit of ${limit}`).toBeGreaterThan(limit * (1 - TOLERANCE))
    expect(rate, `${key} with a limit of ${limit}`).toBeLessThan(limit * (1 + TOLERANCE))
  }
})

/** Several writers reach the limit even on a busy machine. */
const WRITERS = 4

/** Starts a shell in the cgroup and in its own process group. Its children write until they are killed. */
function startWriters(cgroupDirectory: string, file: string, load: string): ChildProcess {
  const writer = `while :; do ${load.replace('$F', '"$F.$N"')} 2>/dev/null || exit 1; done`
  const script = `echo $$ > "$CGROUP/cgroup.procs"; for N in $(seq ${WRITERS}); do (${writer}) & done; wait`
  return spawn('sh', ['-c', script], {
    env: { ...process.env, F: file, CGROUP: cgroupDirectory },
    stdio: 'ignore',
    detached: true,
  })
}

/** Kills the process group and waits for throttled writes, which end only when the kernel grants them. */
async function killProcessGroup(child: ChildProcess, cgroupDirectory: string): Promise<void> {
  const exit = once(child, 'exit')
  process.kill(-child.pid!, 'SIGKILL')
  await exit
  while ((await readFile(join(cgroupDirectory, 'cgroup.procs'), 'utf8')) !== '') await pause(20)
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
