// Runs `stowage leaks` against an API server on a port, with the fake driver and with the local driver on sockets.
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { connectDriver } from '../../../csi/index.ts'
import { DRIVER_NAME, startDriver, TOPOLOGY_KEY } from '../../../driver/index.ts'
import { VOL_DATA } from '../../../nodeagent/paths.ts'
import { formatVolData } from '../../../nodeagent/vol-data.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runCommandLine } from '../../run.ts'
import { findDriverLeaks } from './find-driver-leaks.ts'

type Program = Awaited<ReturnType<typeof startProgramFixture>>

const MIB = 1024 ** 2
const CAPABILITY = { accessMode: { mode: 1 }, accessType: { case: 'mount', value: {} } }

async function run(program: Program, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', '']
  const deps = { clock: systemClock(), random: () => 0.5, signal: new AbortController().signal }
  const code = await runCommandLine(['node', 'stowage', 'leaks', ...args, '--kubeconfig', program.kubeconfig], {
    ...deps,
    write: (text) => {
      out += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

const createPv = (program: Program, name: string, driver: string, volumeHandle: string) =>
  program.api.post('/api/v1/persistentvolumes', {
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver, volumeHandle, volumeAttributes: { pool: 'pool' } },
    },
  })

async function createVolumes(address: string, names: readonly string[]): Promise<string[]> {
  const driver = connectDriver({ address, clock: systemClock(), log: silentLog })
  const handles: string[] = []
  for (const name of names) {
    const request = { name, volumeCapabilities: [CAPABILITY], capacityRange: { requiredBytes: BigInt(1024 * MIB) } }
    handles.push((await driver.controller.createVolume(request as never)).volume!.volumeId)
  }
  driver.close()
  return handles
}

describe('stowage leaks', () => {
  it('PLUS-8 prints leaks, deletes them with --yes, and exits with 1 until none remain', async () => {
    const program = await startProgramFixture()
    const { endpoint, fake } = await program.serveFakeDriver({})
    const flags = ['--csi-address', endpoint]
    expect(await run(program, ...flags)).toMatchObject({
      code: 0,
      out: 'fake.stowage.example: 0 volumes; 0 PVs\nNo leaks.\n',
    })
    const [orphan, keptHandle] = await createVolumes(endpoint, ['orphan', 'kept'])
    await createPv(program, 'kept', 'fake.stowage.example', keptHandle!)
    const table =
      'fake.stowage.example: 2 volumes; 1 PV\n\n' +
      `LEAK             WHAT                    SIZE  AGE  WHY\nVolumeWithoutPV  ${orphan}   1Gi  -    no PV refers to this volume\n\n` +
      '1 orphan, 1Gi. stowage leaks --adopt writes PVs for volumes, stowage leaks --delete deletes orphans.\n'
    expect(await run(program, ...flags)).toEqual({ code: 1, out: table, err: '' })
    const question = `\nDelete:\n  volume ${orphan} of fake.stowage.example, 1Gi\nTheir data is lost.`
    const planned = await run(program, ...flags, '--delete', '--dry-run')
    expect(planned).toMatchObject({ code: 1, out: expect.stringContaining(table + question) })
    expect(planned.out).toContain('Nothing was changed (--dry-run).')
    expect(await run(program, ...flags, '--delete')).toMatchObject({
      code: 2,
      err: expect.stringContaining('needs --yes'),
    })
    expect(await run(program, ...flags, '--delete', '-o', 'json')).toMatchObject({ code: 2, out: '' })
    expect(Object.keys(fake.state.volumes)).toHaveLength(2)
    const deleted = await run(program, ...flags, '--delete', '--yes', '--grace-period', '0s', '-o', 'json')
    expect(deleted.code).toBe(0)
    expect(JSON.parse(deleted.out).changes).toMatchObject([{ result: 'deleted', leak: { handle: orphan } }])
    expect(Object.keys(fake.state.volumes)).toEqual([keptHandle])
    const nothing = await run(program, ...flags, '--delete', '--yes')
    expect(nothing).toMatchObject({ code: 0, out: expect.stringContaining('There is nothing to delete.') })
  })

  it('SYS-12 rejects invalid flags and sockets, and changes nothing', async () => {
    const program = await startProgramFixture()
    const { endpoint } = await program.serveFakeDriver({})
    for (const [args, message] of [
      [['--adopt', '--delete'], 'Set --adopt or --delete, not both.'],
      [['vol-1'], 'Handles select what --adopt or --delete changes'],
      [['--claim', 'shop/a', '--delete', 'vol-1'], 'Set --class and --claim only with --adopt.'],
      [['--claim', 'shop', '--adopt', 'vol-1'], 'expected a namespace and a name'],
      [['--claim', 'shop/a', '--adopt'], 'Set --claim with exactly one handle.'],
      [['--yes'], 'only with --adopt or --delete'],
      [['--delete', 'vol-1', '--yes'], '"vol-1" is not a leak that --delete can change. Nothing was changed.'],
      [['--driver', 'other.example'], 'The sockets are those of fake.stowage.example, not of other.example.'],
      [['--grace-period', 'soon'], 'expected a duration'],
    ] as const)
      expect(await run(program, '--csi-address', endpoint, ...args)).toMatchObject({
        code: 2,
        err: expect.stringContaining(message),
      })
    expect(await run(program, '--csi-address', join(program.dir, 'none.sock'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('Cannot connect to the CSI driver at'),
    })
    expect(await run(program, '--data-dir', program.dir)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/No socket in .* responds as a CSI driver\./),
    })
  })

  it('PLUS-8 finds the local driver of a data directory, with files and mounts that belong to no volume', async () => {
    const program = await startProgramFixture()
    const node = join(program.dir, 'nodes', 'node-1')
    await mkdir(join(node, 'agent'), { recursive: true })
    const endpoint = join(node, 'csi.sock')
    const driver = await startDriver({
      endpoint: `unix://${endpoint}`,
      nodeId: 'node-1',
      pool: join(node, 'pool'),
      poolBytes: 10 * 1024 * MIB,
      backend: 'directory',
      topologyKey: TOPOLOGY_KEY,
      workloadCgroups: [],
      version: '0.0.0',
      clock: systemClock(),
      log: silentLog,
    })
    onTestFinished(() => driver.stop())
    const [orphan, lost] = await createVolumes(endpoint, ['pvc-1', 'pvc-2'])
    await rename(join(node, 'pool', 'volumes', lost!), join(node, 'pool', 'volumes', 'v-aaaaaaaaaaaaaaaaaaaaaaaaaa'))
    await createPv(program, 'pvc-2', DRIVER_NAME, lost!)
    const staging = join(node, 'agent', 'plugins', 'kubernetes.io', 'csi', DRIVER_NAME, 'digest')
    const target = join(node, 'agent', 'pods', 'pod-uid', 'volumes', 'kubernetes.io~csi', 'pvc-2')
    for (const [directory, volumeHandle] of [[staging, 'v-gone'] as const, [target, lost!] as const]) {
      await mkdir(directory, { recursive: true })
      await writeFile(join(directory, VOL_DATA), formatVolData({ volumeHandle, driverName: DRIVER_NAME }))
    }
    const clock = systemClock()
    const { signal } = new AbortController()
    const options = { driver: DRIVER_NAME, dataDir: program.dir }
    const { leaks } = await findDriverLeaks(program.client, options, { clock, signal })
    expect(leaks.map(({ reason, handle, path }) => [reason, handle ?? path])).toEqual([
      ['VolumeWithoutPV', orphan],
      ['FileWithoutVolume', join(node, 'pool', 'volumes', 'v-aaaaaaaaaaaaaaaaaaaaaaaaaa')],
      ['MountWithoutVolume', 'v-gone'],
      ['MountWithoutPod', lost],
    ])
    expect(leaks[0]).toMatchObject({
      message: 'no PV refers to this volume, which was created as pvc-1',
      createdAt: expect.any(String),
      leftBecause: 'the volume is younger than the grace period of 2 min',
    })
    await expect(
      findDriverLeaks(program.client, { ...options, driver: 'x.example' }, { clock, signal }),
    ).rejects.toThrow(/No socket in .* responds as the driver x\.example/)
  })
})
