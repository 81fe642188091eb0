// Runs many volumes through their lifecycle while the driver is killed at random. Callers retry unanswered calls, and some
// delete their volume early. At the end no volume may be left, and no data may be lost.
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
const skipMessage = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4', 'limits'])
const CYCLES = Number(process.env.DRIVER_CYCLES ?? (process.env.CI ? 100 : 40))
const CALLERS = 12
/** Bounds of the time from ready to the next kill: answered calls plus milliseconds. */
const UPTIME = { callsMax: 40, delayMsMax: 60 }

describe.skipIf(skipMessage)(`SIGKILL${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let hostFixture: HostFixture
  let driver: LocalDriver
  let cgroup: string
  beforeAll(async () => {
    hostFixture = await startHostFixture()
    cgroup = (await hostFixture.cgroup('kill')).path
    driver = await startLocalDriver({
      flags: ['--pool-size', '10Gi', '--workload-cgroup', cgroup, '--log-level', 'warn'],
    })
  })
  afterAll(async () => {
    await driver?.dispose()
    await hostFixture?.dispose()
  })

  it(`PROV-12 leaves no file, device, mount or limit behind in ${CYCLES} volume lifecycles`, async () => {
    const seed = seedFrom('CRASH_SEED')
    const random = seededRandom(seed)
    const usedDevices = new Set<string>()
    let startedVolumes = 0
    let kills = 0
    let retries = 0
    let isStopped = false

    let answeredCalls = 0
    const killLoop = (async () => {
      while (!isStopped) {
        const callsBeforeKill = answeredCalls + Math.floor(random() * UPTIME.callsMax)
        while (answeredCalls < callsBeforeKill && !isStopped) await pause(5)
        await pause(random() * UPTIME.delayMsMax)
        if (isStopped) return
        await driver.kill()
        kills++
        await driver.start()
      }
    })()
    const callers = Array.from({ length: CALLERS }, async () => {
      while (startedVolumes < CYCLES) await runLifecycle(`volume-${startedVolumes++}`)
    })
    try {
      await Promise.all(callers)
    } finally {
      isStopped = true
      await killLoop
    }

    expect(await driver.leftovers(), `seed ${seed}`).toEqual([])
    for (const kind of ['volumes', 'snapshots', '.stowage/volumes', '.stowage/snapshots', '.stowage/presences']) {
      expect(await readdir(join(driver.pool, kind)), `seed ${seed}: ${kind}`).toEqual([])
    }
    expect(await readdir(join(driver.dir, 'target')), `seed ${seed}`).toEqual([])
    for (const device of usedDevices) {
      // Skip a device that another test uses now: the limits on it belong to that test.
      const isFree = async () => (await driver.host.loops.list()).every((loop) => loop.device !== device)
      if (!(await isFree())) continue
      const limits = await driver.host.limits.appliedLimits(device)
      if (await isFree()) expect(limits, `seed ${seed}`).toEqual([])
    }
    const { availableCapacity } = await driver.csi.controller.getCapacity({})
    expect(availableCapacity).toBe(BigInt(10 * 1024 * MIB))
    console.log(`kill test: seed ${seed}, ${CYCLES} lifecycles, ${kills} kills, ${retries} calls retried, nothing left`)
    expect(kills).toBeGreaterThan(CYCLES / 20)
    expect(retries).toBeGreaterThan(0)

    /** Runs one volume from create to delete. Some callers skip the later steps. */
    async function runLifecycle(name: string): Promise<void> {
      const { controller, node } = driver.csi
      const fsType = random() < 0.5 ? 'xfs' : 'ext4'
      const capability = {
        accessType: { case: 'mount' as const, value: { fsType } },
        accessMode: { mode: Mode.SINGLE_NODE_MULTI_WRITER },
      }
      const stepCount = random() < 0.25 ? Math.floor(random() * 5) : 5
      const targetPath = join(driver.dir, 'target', name)
      const stagingTargetPath = join(driver.dir, 'staging', name)
      await mkdir(join(driver.dir, 'target'), { recursive: true })
      await mkdir(stagingTargetPath, { recursive: true })

      const { volume } = await retryUntilAnswered(() =>
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
      for (const [index, step] of steps.slice(0, stepCount).entries()) {
        await retryUntilAnswered<unknown>(step)
        if (index === 1) {
          for (const loop of await driver.host.loops.list())
            if (loop.file.includes(volumeId)) usedDevices.add(loop.device)
          await writeFile(join(targetPath, 'name'), name, { flush: true })
        }
      }
      if (stepCount >= 4) {
        expect(await readFile(join(targetPath, 'name'), 'utf8'), `seed ${seed}`).toBe(name)
        if (fsType === 'xfs') {
          const expandRequest = { volumeId, volumePath: targetPath, stagingTargetPath, volumeCapability: capability }
          await retryUntilAnswered(() => node.nodeExpandVolume(expandRequest))
          const { totalBytes } = await driver.host.usage.measureFilesystem(targetPath)
          expect(totalBytes, `seed ${seed}`).toBeGreaterThan(270 * MIB)
        }
      }
      await retryUntilAnswered(() => node.nodeUnpublishVolume({ volumeId, targetPath }))
      await retryUntilAnswered(() => node.nodeUnstageVolume({ volumeId, stagingTargetPath }))
      await retryUntilAnswered(() => controller.deleteVolume({ volumeId }))
    }

    async function retryUntilAnswered<T>(call: () => Promise<T>): Promise<T> {
      for (;;) {
        try {
          const response = await call()
          answeredCalls++
          return response
        } catch (error) {
          if (!(error instanceof CsiError) || !RETRIED_CODES.includes(error.codeName))
            throw new Error(`seed ${seed}: ${error}`)
          retries++
          await pause(60)
        }
      }
    }
  }, 600_000)
})

/** Codes after which a call is retried. */
const RETRIED_CODES: readonly CsiFailureCode[] = ['UNAVAILABLE', 'CANCELLED', 'UNKNOWN', 'ABORTED']

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
