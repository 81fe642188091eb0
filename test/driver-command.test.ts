// Tests the output, metrics and error messages of `stowage driver`.
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { capabilityOf, MIB } from '../src/driver/driver.fixture.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { buildProgram } from './helpers/build-program.ts'
import { type LocalDriver, startLocalDriver } from './helpers/local-driver.ts'

const facts = await probeThisMachine()
const skipMessage = skipReason(facts, ['loop', 'mount', 'xfs', 'limits'])

describe('stowage driver', () => {
  it.skipIf(skipMessage)(
    `PIO-8 reports the IO and the limits of its volumes${skipMessage ? ` (${skipMessage})` : ''}`,
    async () => {
      const flags = [
        '--pool-size',
        '2Gi',
        '--metrics-address',
        '127.0.0.1:0',
        '--workload-cgroup',
        '/stowage-no-such-cgroup',
      ]
      const driver = await startLocalDriver({ flags })
      try {
        const volumeId = await publish(driver, { iops: '400', throughput: '30' })
        await writeFile(join(driver.dir, 'target', 'file'), Buffer.alloc(8 * MIB, 1), { flush: true })
        const metrics = await readMetrics(driver)
        const volumeLabel = `volume_id="${volumeId}"`
        expect(metrics.get('stowage_driver_backend{backend="loop"}')).toBe(1)
        expect(metrics.get('stowage_driver_pool_size_bytes')).toBe(2 * 1024 * MIB)
        expect(metrics.get('stowage_driver_pool_promised_bytes')).toBe(400 * MIB)
        expect(metrics.get('stowage_driver_objects{kind="volume"}')).toBe(1)
        expect(metrics.get('stowage_driver_staged_volumes')).toBe(1)
        expect(metrics.get(`stowage_driver_volume_healthy{${volumeLabel}}`)).toBe(1)
        expect(metrics.get(`stowage_driver_volume_iops_limit{${volumeLabel}}`)).toBe(400)
        expect(metrics.get(`stowage_driver_volume_throughput_limit_bytes{${volumeLabel}}`)).toBe(30 * MIB)
        expect(metrics.get(`stowage_driver_limit_enforced{${volumeLabel}}`)).toBe(0) // the cgroup of the flag does not exist
        expect(metrics.get(`stowage_driver_volume_io_bytes{${volumeLabel},direction="write"}`)).toBeGreaterThanOrEqual(
          8 * MIB,
        )
        expect(
          metrics.get(`stowage_driver_volume_iops_available{${volumeLabel},direction="read"}`),
        ).toBeLessThanOrEqual(400)
        const create =
          'driver_name="local.csi.stowage.dev",method_name="/csi.v1.Controller/CreateVolume",grpc_status_code="OK"'
        expect(metrics.get(`csi_plugin_operations_seconds_count{${create}}`)).toBe(1)
        expect(driver.log()).toContain('the limits of a volume are not enforced')
      } finally {
        await driver.dispose()
      }
    },
  )

  it('prints its backend, and stops on SIGTERM', async () => {
    const driver = await startLocalDriver({ flags: ['--backend', 'directory'] })
    try {
      expect(driver.ready).toMatchObject({ backend: 'directory', endpoint: driver.endpoint })
      expect(driver.ready.shortcomings.join(' ')).toMatch(/sizes of volumes are not enforced/)
      await driver.stop()
      expect(driver.log()).toContain('stopping')
      await driver.start()
    } finally {
      await driver.dispose()
    }
  })

  it.each([
    [['--pool-size', 'large'], /--pool-size "large": expected a size/],
    [['--pool-size', '-1Gi'], /--pool-size "-1Gi": expected a size/],
    [['--node-id', 'a b'], /--node-id "a b": expected the node's name/],
    [['--topology-key', '/'], /--topology-key "\/": expected a label key/],
    [['--metrics-address', 'here'], /--metrics-address "here": expected HOST:PORT/],
    [['--endpoint', 'tcp://127.0.0.1:1'], /--endpoint "tcp:\/\/127.0.0.1:1" is not a Unix socket/],
    [['--backend', 'tape'], /Allowed choices are auto, loop, directory/],
  ])('rejects the flags %j', async (flags, message) => {
    const program = await buildProgram()
    const args = ['driver', '--endpoint', 'unix:///tmp/x.sock', '--node-id', 'n', '--pool', '/tmp/none', ...flags]
    const result = await promisify(execFile)(process.execPath, [program, ...args]).catch((error) => error)
    expect(result.code).toBe(2)
    expect(result.stderr).toMatch(message)
  })
})

async function publish({ csi, dir }: LocalDriver, mutableParameters: Record<string, string>): Promise<string> {
  const volumeCapability = capabilityOf({})
  const { volume } = await csi.controller.createVolume({
    name: 'volume',
    capacityRange: { requiredBytes: BigInt(400 * MIB) },
    volumeCapabilities: [volumeCapability],
    mutableParameters,
  })
  const { volumeId } = volume!
  const stagingTargetPath = join(dir, 'staging')
  await mkdir(stagingTargetPath)
  await csi.node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability })
  await csi.node.nodePublishVolume({ volumeId, stagingTargetPath, targetPath: join(dir, 'target'), volumeCapability })
  return volumeId
}

async function readMetrics({ ready }: LocalDriver): Promise<Map<string, number>> {
  const response = await fetch(`http://127.0.0.1:${ready.metricsPort}/metrics`)
  const lines = (await response.text()).split('\n').filter((line) => line && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}
