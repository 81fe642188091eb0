// Runs many volumes through their lifecycle while the driver is killed at random moments. Callers repeat calls that were
// not answered, or abandon the volume. At the end no volume is left, and no byte was lost.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CsiError, type CsiFailureCode } from '../src/csi/index.ts'
import { MIB, Mode } from '../src/driver/driver.fixture.ts'
import { type HostFixture, startHostFixture } from '../src/host/host.fixture.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { type LocalDriver, startLocalDriver } from './helpers/local-driver.ts'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'

const facts = await probeThisMachine()
const skipped = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4', 'limits'])
const CYCLES = Number(process.env.DRIVER_CYCLES ?? (process.env.CI ? 200 : 40))
const CALLERS = 12
/** From ready to the kill: a number of answered calls plus some time, so that kills hit every step on any machine. */
const LIFE = { callsMax: 40, moreMsMax: 60 }

describe.skipIf(skipped)(`SIGKILL${skipped ? ` (${skipped})` : ''}`, () => {
  let machine: HostFixture
  let driver: LocalDriver
  let cgroup: string
  beforeAll(async () => {
    machine = await startHostFixture()
    cgroup = (await machine.cgroup('kill')).path
    driver = await startLocalDriver({
      flags: ['--pool-size', '10Gi', '--workload-cgroup', cgroup, '--log-level', 'warn'],
    })
  })
  afterAll(async () => {
    await driver?.dispose()
    await machine?.dispose()
  })

  it(`SYS-6 PROV-5 leaves no file, device, mount or limit behind in ${CYCLES} volume lifecycles`, async () => {
    const seed = seedFrom('CRASH_SEED')
    const random = seededRandom(seed)
    const usedDevices = new Set<string>()
    let begun = 0
    let kills = 0
    let repeats = 0
    let isOver = false

    let answered = 0
    const killing = (async () => {
      while (!isOver) {
        const until = answered + Math.floor(random() * LIFE.callsMax)
        while (answered < until && !isOver) await pause(5)
        await pause(random() * LIFE.moreMsMax)
        if (isOver) return
        await driver.kill()
        kills++
        await driver.start()
      }
    })()
    const callers = Array.from({ length: CALLERS }, async () => {
      while (begun < CYCLES) await live(`volume-${begun++}`)
    })
    try {
      await Promise.all(callers)
    } finally {
      isOver = true
      await killing
    }

    expect(await driver.traces(), `seed ${seed}`).toEqual([])
    for (const kind of ['volumes', 'snapshots', '.stowage/volumes', '.stowage/snapshots', '.stowage/presences']) {
      expect(await readdir(join(driver.pool, kind)), `seed ${seed}: ${kind}`).toEqual([])
    }
    expect(await readdir(join(driver.dir, 'at')), `seed ${seed}`).toEqual([])
    for (const device of usedDevices) {
      // Another test may own the device number, and its limits, by now.
      const isFree = async () => (await driver.host.loops.list()).every((loop) => loop.device !== device)
      if (!(await isFree())) continue
      const limits = await driver.host.limits.appliedLimits(device)
      if (await isFree()) expect(limits, `seed ${seed}`).toEqual([])
    }
    const { availableCapacity } = await driver.csi.controller.getCapacity({})
    expect(availableCapacity).toBe(BigInt(10 * 1024 * MIB))
    console.log(`kill test: seed ${seed}, ${CYCLES} lives, ${kills} kills, ${repeats} calls repeated, nothing left`)
    expect(kills).toBeGreaterThan(CYCLES / 20)
    expect(repeats).toBeGreaterThan(0)

    /** One volume from create to delete; some callers stop half way. */
    async function live(name: string): Promise<void> {
      const { controller, node } = driver.csi
      const fsType = random() < 0.5 ? 'xfs' : 'ext4'
      const capability = {
        accessType: { case: 'mount' as const, value: { fsType } },
        accessMode: { mode: Mode.SINGLE_NODE_MULTI_WRITER },
      }
      const givesUpAfter = random() < 0.25 ? Math.floor(random() * 5) : 5
      const targetPath = join(driver.dir, 'at', name)
      const stagingTargetPath = join(driver.dir, 'staging', name)
      await mkdir(join(driver.dir, 'at'), { recursive: true })
      await mkdir(stagingTargetPath, { recursive: true })

      const { volume } = await untilDone(() =>
        controller.createVolume({
          name,
          capacityRange: { requiredBytes: BigInt(300 * MIB) },
          volumeCapabilities: [capability],
          mutableParameters: { iops: '50000' },
        }),
      )
      const volumeId = volume!.volumeId
      const steps = [
        () => node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability: capability }),
        () => node.nodePublishVolume({ volumeId, stagingTargetPath, targetPath, volumeCapability: capability }),
        () => controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: BigInt(350 * MIB) } }),
        () => controller.controllerModifyVolume({ volumeId, mutableParameters: { iops: '60000' } }),
      ]
      for (const [number, step] of steps.slice(0, givesUpAfter).entries()) {
        await untilDone<unknown>(step)
        if (number === 1) {
          for (const loop of await driver.host.loops.list())
            if (loop.file.includes(volumeId)) usedDevices.add(loop.device)
          await writeFile(join(targetPath, 'name'), name, { flush: true })
        }
      }
      if (givesUpAfter >= 4) {
        expect(await readFile(join(targetPath, 'name'), 'utf8'), `seed ${seed}`).toBe(name)
        if (fsType === 'xfs') {
          const grow = { volumeId, volumePath: targetPath, stagingTargetPath, volumeCapability: capability }
          await untilDone(() => node.nodeExpandVolume(grow))
          const { totalBytes } = await driver.host.usage.ofFilesystem(targetPath)
          expect(totalBytes, `seed ${seed}`).toBeGreaterThan(270 * MIB)
        }
      }
      await untilDone(() => node.nodeUnpublishVolume({ volumeId, targetPath }))
      await untilDone(() => node.nodeUnstageVolume({ volumeId, stagingTargetPath }))
      await untilDone(() => controller.deleteVolume({ volumeId }))
    }

    async function untilDone<T>(call: () => Promise<T>): Promise<T> {
      for (;;) {
        try {
          const answer = await call()
          answered++
          return answer
        } catch (error) {
          if (!(error instanceof CsiError) || !UNANSWERED.includes(error.codeName))
            throw new Error(`seed ${seed}: ${error}`)
          repeats++
          await pause(60)
        }
      }
    }
  }, 600_000)
})

/** Codes that do not determine whether the call was executed. */
const UNANSWERED: readonly CsiFailureCode[] = ['UNAVAILABLE', 'CANCELLED', 'UNKNOWN', 'ABORTED']

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
