// IO limits: a process in its own cgroup writes as fast as it can, and the device's counters measure the rate before and
// after the limit changes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DriverFixture, MIB, startDriverFixture } from '../src/driver/driver.fixture.ts'
import type { VolumeId } from '../src/driver/ids.ts'
import { imageOf } from '../src/driver/pool/pool-layout.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const facts = await probeThisMachine()
const skipped = skipReason(facts, ['loop', 'mount', 'xfs', 'limits'])

/** The kernel grants IO in slices of 100 ms: over this time they do not matter. */
const WINDOW_MS = 3_000
/** A new limit applies at once, but requests queued under the old one complete first. */
const SETTLE_MS = 700
const TOLERANCE = 0.1

// A busy machine may be slower than the limit; retry.
describe.skipIf(skipped)(`limits${skipped ? ` (${skipped})` : ''}`, { retry: 3 }, () => {
  let fixture: DriverFixture
  let volumes = 0
  let cgroup: { readonly path: string; readonly directory: string }
  beforeAll(async () => {
    fixture = await startDriverFixture({ backend: 'loop' })
    cgroup = await fixture.machine.cgroup('limited')
  })
  afterAll(() => fixture?.dispose())

  it.each([
    {
      what: 'direct writes',
      key: 'throughput',
      load: 'dd if=/dev/zero of=$F bs=1M count=32 oflag=direct conv=notrunc',
    },
    {
      what: 'buffered writes with sync',
      key: 'throughput',
      load: 'dd if=/dev/zero of=$F bs=1M count=5 conv=notrunc,fsync',
    },
    { what: 'direct writes', key: 'iops', load: 'dd if=/dev/zero of=$F bs=4k count=4096 oflag=direct conv=notrunc' },
  ] as const)('PIO-10 enforces $key within 10 % for $what, and changes it under load', async ({ key, load }) => {
    const [first, second] = key === 'iops' ? [100, 250] : [10, 25]
    const { id, path } = await fixture.use(`limited-${++volumes}`, { mutable: { [key]: String(first) } })
    await fixture.running.setWorkloadCgroups(id as VolumeId, [cgroup.path])
    expect(await conditionOf(id)).toMatch(/ are enforced/)

    const writer = writeIn(cgroup.directory, join(path, 'file'), load)
    try {
      await expectRate(id, key, first)
      await fixture.csi.controller.controllerModifyVolume({
        volumeId: id,
        mutableParameters: { [key]: String(second) },
      })
      await expectRate(id, key, second)
    } finally {
      await endGroup(writer, cgroup.directory)
    }
    const device = await deviceOf(id)
    await fixture.unpublish(id)
    await fixture.unstage(id)
    expect(await fixture.machine.host.limits.appliedLimits(device)).toEqual([])
    await fixture.remove(id)
  })

  it('PIO-10 removes a limit at once, and restores the remaining one after a restart', async () => {
    const { id } = await fixture.use(`comes-back-${++volumes}`, { mutable: { iops: '100', throughput: '10' } })
    await fixture.running.setWorkloadCgroups(id as VolumeId, [cgroup.path])
    const device = await deviceOf(id)
    const lines = async () => (await fixture.machine.host.limits.appliedLimits(device)).map(({ limit }) => limit)
    const both = { readIops: 100, writeIops: 100, readBps: 10 * MIB, writeBps: 10 * MIB }
    for (const line of await lines()) expect(line).toEqual(both)
    await fixture.csi.controller.controllerModifyVolume({ volumeId: id, mutableParameters: { iops: '0' } })
    for (const line of await lines()) expect(line).toEqual({ readBps: 10 * MIB, writeBps: 10 * MIB })
    await fixture.restart()
    await fixture.running.setWorkloadCgroups(id as VolumeId, [cgroup.path])
    expect(await lines()).not.toEqual([])
    for (const line of await lines()) expect(line).toEqual({ readBps: 10 * MIB, writeBps: 10 * MIB })
    await fixture.unpublish(id)
    await fixture.unstage(id)
    await fixture.remove(id)
  })

  const conditionOf = async (volumeId: string) =>
    (await fixture.csi.controller.controllerGetVolume({ volumeId })).status!.volumeCondition!.message

  async function deviceOf(id: string): Promise<string> {
    const [device] = await fixture.machine.host.loops.findByFile(imageOf(fixture.pool, id as VolumeId))
    return device!.device
  }

  async function expectRate(id: string, key: 'iops' | 'throughput', limit: number): Promise<void> {
    const device = await deviceOf(id)
    await pause(SETTLE_MS)
    const done = async () => {
      const { totals } = (await fixture.machine.host.counters.read(device))!
      return { atMs: performance.now(), amount: key === 'iops' ? totals.writes : totals.writtenBytes / MIB }
    }
    const from = await done()
    await pause(WINDOW_MS)
    const to = await done()
    const rate = ((to.amount - from.amount) * 1_000) / (to.atMs - from.atMs)
    expect(rate, `${key} with a limit of ${limit}`).toBeGreaterThan(limit * (1 - TOLERANCE))
    expect(rate, `${key} with a limit of ${limit}`).toBeLessThan(limit * (1 + TOLERANCE))
  }
})

/** Several writers, so that a busy machine does not slow them below the limit. */
const WRITERS = 4

/** A shell in the cgroup; its children write until they are killed, in their own process group. */
function writeIn(cgroupDirectory: string, file: string, load: string): ChildProcess {
  const writer = `while :; do ${load.replace('$F', '"$F.$N"')} 2>/dev/null || exit 1; done`
  const script = `echo $$ > "$CGROUP/cgroup.procs"; for N in $(seq ${WRITERS}); do (${writer}) & done; wait`
  return spawn('sh', ['-c', script], {
    env: { ...process.env, F: file, CGROUP: cgroupDirectory },
    stdio: 'ignore',
    detached: true,
  })
}

/** A throttled write ends only when it was granted. */
async function endGroup(child: ChildProcess, cgroupDirectory: string): Promise<void> {
  const gone = once(child, 'exit')
  process.kill(-child.pid!, 'SIGKILL')
  await gone
  while ((await readFile(join(cgroupDirectory, 'cgroup.procs'), 'utf8')) !== '') await pause(20)
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
