// Runs `stowage migrate` as a process against a server. In the first suite the test acts as the controller that modifies
// volumes; in the second, the real controller and a driver run.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Stored } from '../src/api/kind.ts'
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../src/api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../src/api/kinds/volume/volume-schema.ts'
import { systemClock } from '../src/base/clock.ts'
import { type HttpClient, httpClient, kubeconfigConnection } from '../src/client/index.ts'
import { buildProgram } from './helpers/build-program.ts'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const RECORD = 'migrate.stowage.dev/operation'
const COUNT = 24

type Claim = Stored<PersistentVolumeClaim>

describe('stowage migrate', () => {
  let dir: string
  let server: RunningServer
  let client: HttpClient
  let stop: AbortController
  let controllerRun: Promise<void>
  /** Whether the controller modifies volumes. */
  let isModifying = true

  const start = async (port = '0') => {
    server = await startServer({
      dataDir: join(dir, 'data'),
      command: 'server',
      flags: port === '0' ? [] : ['--listen', `127.0.0.1:${port}`],
    })
    const clock = systemClock()
    client = httpClient({ connection: await kubeconfigConnection({ path: server.kubeconfig, clock }), clock })
    stop = new AbortController()
    controllerRun = runController().catch((error) => {
      if (!stop.signal.aborted) throw error
    })
  }
  const stopController = async () => {
    stop.abort()
    await controllerRun
    client.close()
  }

  async function runController(): Promise<void> {
    for await (const event of client.watch(persistentVolumeClaimKind, { signal: stop.signal })) {
      if (event.type === 'bookmark' || event.type === 'deleted' || !isModifying) continue
      const { metadata, spec, status } = event.object
      const requestedClass = spec?.volumeAttributesClassName
      if (requestedClass === status?.currentVolumeAttributesClassName) continue
      await setCurrentClass(metadata.name!, requestedClass)
    }
  }
  const setCurrentClass = async (name: string, className: string | undefined) => {
    const body = { status: { currentVolumeAttributesClassName: className ?? null } }
    const ref = { namespace: 'default', name }
    const options = { subresource: 'status', signal: stop.signal }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }, options)
  }
  const listClaims = async () => (await server.call('GET', CLAIMS)).json.items as Claim[]
  const listClasses = async () =>
    [...new Set((await listClaims()).map(({ spec }) => spec?.volumeAttributesClassName))].sort()

  async function migrate(args: readonly string[]) {
    const program = await buildProgram()
    const env = { ...process.env, KUBECONFIG: server.kubeconfig }
    const child: ChildProcess = spawn(process.execPath, [program, 'migrate', ...args], { env })
    const exit = once(child, 'exit')
    let [out, err] = ['', '']
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    return {
      child,
      out: () => out,
      /** Waits until the output contains this text. */
      async waitForOutput(text: string) {
        while (!out.includes(text)) {
          if (child.exitCode !== null) throw new Error(`migrate exited without printing ${text}: ${out}${err}`)
          await new Promise((resolve) => setTimeout(resolve, 5)) // polls until the test times out
        }
      },
      async ended() {
        const [code] = await exit
        return { code, out, err }
      },
    }
  }
  const FORWARD = ['--from', 'silver', '--to', 'gold', '--rate', '100/s']

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-migrate-'))
    await start()
    for (const name of ['silver', 'gold']) {
      await server.call('POST', '/apis/storage.k8s.io/v1/volumeattributesclasses', {
        metadata: { name },
        driverName: 'disks.example.com',
        parameters: { tier: name },
      })
    }
    for (let index = 0; index < COUNT; index++) {
      const spec = {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        volumeAttributesClassName: 'silver',
      }
      await server.call('POST', CLAIMS, { metadata: { name: `db-${index}` }, spec })
      const status = { phase: 'Bound', currentVolumeAttributesClassName: 'silver' }
      const type = { 'content-type': 'application/merge-patch+json' }
      await server.call('PATCH', `${CLAIMS}/db-${index}/status`, { status }, type)
    }
  })
  afterAll(async () => {
    await stopController()
    await server.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it('PLUS-4 exits with 130 on Ctrl-C and prints how to continue, continues when it is run again, and rolls back with --undo', async () => {
    const interruptedRun = await migrate(['--from', 'silver', '--to', 'gold', '--rate', '20/s'])
    await interruptedRun.waitForOutput('default/db-4: gold is in effect')
    interruptedRun.child.kill('SIGINT')
    const interruption = await interruptedRun.ended()
    expect(interruption.code).toBe(130)
    expect(interruption.out).toMatch(
      /Run the same command again to continue, or undo the operation:\n {2}stowage migrate --undo --operation m-/,
    )
    expect(await listClasses()).toEqual(['gold', 'silver'])

    const resumedResult = await (await migrate(FORWARD)).ended()
    expect([resumedResult.code, resumedResult.err]).toEqual([0, ''])
    expect(resumedResult.out).toContain(`${COUNT} of ${COUNT} claims moved from silver to gold.`)
    expect(await listClasses()).toEqual(['gold'])
    const ids = new Set(
      (await listClaims()).map(({ metadata }) => JSON.parse(metadata.annotations?.[RECORD] ?? '{}').id),
    )
    expect(ids.size).toBe(1)

    const undoResult = await (await migrate(['--undo', '--rate', '100/s', '--output', 'json'])).ended()
    expect(undoResult.code).toBe(0)
    expect(JSON.parse(undoResult.out)).toMatchObject({ operation: [...ids][0], undo: true, from: 'silver', to: 'gold' })
    expect(await listClasses()).toEqual(['silver'])
    expect((await listClaims()).filter(({ metadata }) => metadata.annotations?.[RECORD])).toEqual([])
  })

  it('PLUS-4 resumes a killed run from the state on the claims', async () => {
    isModifying = false
    const killedRun = await migrate(FORWARD)
    while (!(await listClasses()).includes('gold')) await new Promise((resolve) => setTimeout(resolve, 5))
    killedRun.child.kill('SIGKILL')
    await killedRun.ended()
    isModifying = true
    for (const { metadata, spec } of await listClaims()) {
      if (spec?.volumeAttributesClassName === 'gold') await setCurrentClass(metadata.name, 'gold')
    }
    const resumedResult = await (await migrate(FORWARD)).ended()
    expect(resumedResult.code, resumedResult.out + resumedResult.err).toBe(0)
    expect(resumedResult.out).toContain('Resuming an interrupted run.')
    expect(await listClasses()).toEqual(['gold'])
    expect((await (await migrate(['--undo', '--rate', '100/s'])).ended()).code).toBe(0)
  })

  it('PLUS-4 waits for a server that is killed and restarted', async () => {
    const migrateRun = await migrate(['--from', 'silver', '--to', 'gold', '--rate', '20/s'])
    await migrateRun.waitForOutput('gold is in effect')
    const { port } = new URL(server.url)
    await stopController()
    await server.kill()
    await start(port)
    const { code, out, err } = await migrateRun.ended()
    expect(code, out + err).toBe(0)
    expect(await listClasses()).toEqual(['gold'])
  })

  it('SYS-12 documents itself in --help, and exits with 2 on a usage error', async () => {
    const help = await (await migrate(['--help'])).ended()
    expect([help.code, help.out]).toEqual([0, expect.stringMatching(/Exit codes:\n +0 +all claims have moved/)])
    const rejectedResult = await (await migrate(['--from', 'silver'])).ended()
    expect([rejectedResult.code, rejectedResult.err]).toEqual([
      2,
      expect.stringContaining('Set --from and --to to the current and the new class.'),
    ])
  })
})

describe('stowage migrate with a driver', () => {
  const DRIVER = 'disks.example.com'
  const NAMES = Array.from({ length: 8 }, (_, index) => `db-${index}`)
  let dir: string
  let driver: RunningFakeDriver
  let server: RunningServer

  async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50)) // polls until the test times out
  }
  const listClaims = async () => (await server.call('GET', CLAIMS)).json.items as Claim[]
  /** Returns the iops that the driver applied to the volume of each claim. */
  const readAttributes = async () => {
    const { state } = await driver.control.inspect()
    const volumes = (await server.call('GET', '/api/v1/persistentvolumes')).json.items as Stored<PersistentVolume>[]
    const handles = new Map(volumes.map(({ metadata, spec }) => [metadata.name, spec!.csi!.volumeHandle]))
    return Object.fromEntries(
      (await listClaims()).map(({ metadata, spec }) => [
        metadata.name,
        state.volumes[handles.get(spec!.volumeName!)!]!.mutableParameters.iops,
      ]),
    )
  }
  const run = (args: readonly string[]) =>
    runProgram(['migrate', ...args, '--rate', '50/s'], { KUBECONFIG: server.kubeconfig })

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-migrate-driver-'))
    driver = await startFakeDriver({ flags: ['--name', DRIVER] })
    server = await startServer({ dataDir: dir, flags: ['--nodes', '0', '--driver-socket', driver.endpoint] })
    await server.call('POST', '/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'disks' },
      provisioner: DRIVER,
    })
    for (const [name, iops] of Object.entries({ silver: '100', gold: '900' })) {
      const body = { metadata: { name }, driverName: DRIVER, parameters: { iops } }
      await server.call('POST', '/apis/storage.k8s.io/v1/volumeattributesclasses', body)
    }
    for (const name of NAMES) {
      const spec = {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'disks',
        volumeAttributesClassName: 'silver',
        resources: { requests: { storage: '1Gi' } },
      }
      await server.call('POST', CLAIMS, { metadata: { name }, spec })
    }
    await pollUntil(async () => (await listClaims()).every(({ status }) => status?.phase === 'Bound'))
  })
  afterAll(async () => {
    await server?.stop()
    await driver?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  it('PLUS-4 modifies volumes, keeps the old attributes if the driver rejects the new ones, and restores all with --undo', async () => {
    const expectedIops = (iops: string) => Object.fromEntries(NAMES.map((name) => [name, iops]))
    expect(await readAttributes()).toEqual(expectedIops('100'))
    const message = 'iops 900: the pool has 500 left'
    await driver.control.setRules([
      { method: 'ControllerModifyVolume', effect: { do: 'fail', code: 'INVALID_ARGUMENT', message }, times: 1 },
    ])
    const failedResult = await run(['--from', 'silver', '--to', 'gold'])
    expect(failedResult.code, failedResult.out + failedResult.err).toBe(1)
    expect(failedResult.out).toContain(`7 of 8 claims moved from silver to gold, 1 failed.`)
    expect(failedResult.out).toContain(message)
    expect(Object.values(await readAttributes()).filter((iops) => iops === '100')).toHaveLength(1)

    const undoResult = await run(['--undo'])
    expect(undoResult.code, undoResult.out + undoResult.err).toBe(0)
    expect(await readAttributes()).toEqual(expectedIops('100'))
    for (const { status, metadata } of await listClaims()) {
      expect([
        status?.currentVolumeAttributesClassName,
        status?.modifyVolumeStatus,
        metadata.annotations?.[RECORD],
      ]).toEqual(['silver', undefined, undefined])
    }

    const retryResult = await run(['--from', 'silver', '--to', 'gold'])
    expect(retryResult.code, retryResult.out + retryResult.err).toBe(0)
    expect(await readAttributes()).toEqual(expectedIops('900'))
  })
})

async function runProgram(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [await buildProgram(), ...args], { env: { ...process.env, ...env } })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const [code] = await once(child, 'close')
  return { code, out, err }
}
