// Runs `stowage grow` as a process against a server and a CSI driver in their own processes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const DRIVER = 'disks.example.com'
const GI = 1024 ** 3
const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims'

describe('stowage grow', () => {
  let dir: string
  let driver: RunningFakeDriver
  let server: RunningServer

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-grow-'))
    driver = await startFakeDriver({
      flags: ['--name', DRIVER, '--maximum', '20Gi'],
    })
    server = await startServer({ dataDir: join(dir, 'data'), flags: ['--driver-socket', driver.endpoint] })
    await create('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await create('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'disks' },
      provisioner: DRIVER,
      allowVolumeExpansion: true,
    })
  })
  afterAll(async () => {
    await server?.stop()
    await driver?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function create(path: string, body: object): Promise<void> {
    const { status, text } = await server.call('POST', path, body)
    expect(status, text).toBe(201)
  }

  const createBoundClaims = async (app: string, count: number) => {
    const names = Array.from({ length: count }, (_, index) => `${app}-${index}`)
    for (const name of names) {
      const spec = {
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Block', // block devices need no node expansion
        storageClassName: 'disks',
        resources: { requests: { storage: '1Gi' } },
      }
      await create(CLAIMS, { metadata: { name, labels: { app } }, spec })
    }
    for (const name of names) await pollUntil(async () => (await getClaim(name)).status.phase === 'Bound')
    return names
  }
  const getClaim = async (name: string) => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const getSizes = async (names: readonly string[]) =>
    Promise.all(names.map(async (name) => (await getClaim(name)).status.capacity.storage))
  /** Polls until the condition is true or the test times out. */
  async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  async function startGrow(...args: string[]) {
    const flags = ['grow', '--kubeconfig', server.kubeconfig, '--namespace', 'shop', ...args]
    const child = spawn(process.execPath, [await buildProgram(), ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text
    })
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }))
    return { child, ended, out: () => out }
  }
  const runGrow = async (...args: string[]) => (await startGrow(...args)).ended

  it('PLUS-13 expands the selected claims and reports each of them', async () => {
    const names = await createBoundClaims('db', 3)
    const { code, out, err } = await runGrow('--selector', 'app=db', '--to', '2Gi')
    expect(err).toBe('')
    expect(code).toBe(0)
    expect(await getSizes(names)).toEqual(['2Gi', '2Gi', '2Gi'])
    expect(out).toContain('shop/db-0: grown to 2Gi\n')
    expect(out).toContain('db-2   1Gi   2Gi  grown\n\nAll 3 claims have the requested size.\n')
    const volumes = Object.values((await driver.control.inspect()).state.volumes)
    expect(volumes.map(({ capacityBytes }) => capacityBytes)).toEqual([2 * GI, 2 * GI, 2 * GI])
  })

  it('PLUS-13 stops if the driver rejects a size, prints its message, and exits with 1', async () => {
    const names = await createBoundClaims('big', 2)
    const { code, out } = await runGrow('--selector', 'app=big', '--to', '50Gi', '--output', 'json')
    expect(code).toBe(1)
    const { claims } = JSON.parse(out)
    expect(claims).toMatchObject([
      { name: 'big-0', from: '1Gi', to: '50Gi', result: 'failed' },
      { name: 'big-1', result: 'not begun' },
    ])
    expect(claims[0].message).toContain('OutOfRange')
    expect(await getSizes(names)).toEqual(['1Gi', '1Gi'])
  })

  it('PLUS-13 expands every claim once with --by, even if it is interrupted or killed and run again', async () => {
    const names = await createBoundClaims('log', 4)
    await driver.control.setRules([{ method: 'ControllerExpandVolume', afterMs: 300 }])
    for (const [signal, size] of [
      ['SIGINT', '2Gi'],
      ['SIGKILL', '3Gi'],
    ] as const) {
      const interruptedRun = await startGrow('--selector', 'app=log', '--by', '1Gi')
      await pollUntil(async () => interruptedRun.out().includes('log-1: '))
      interruptedRun.child.kill(signal)
      const { code, out } = await interruptedRun.ended
      expect(code).toBe(signal === 'SIGINT' ? 130 : null)
      if (signal === 'SIGINT') expect(out).toContain('Run the same command again to continue.')
      const resumedRun = await runGrow('--selector', 'app=log', '--by', '1Gi')
      expect(resumedRun.out).toContain('Resuming an interrupted run.')
      expect(resumedRun.code).toBe(0)
      expect(await getSizes(names)).toEqual(names.map(() => size))
    }
    await driver.control.setRules([])
  })

  it('PLUS-13 continues after a restart of the server', async () => {
    const names = await createBoundClaims('web', 3)
    await driver.control.setRules([{ method: 'ControllerExpandVolume', afterMs: 500 }])
    const port = new URL(server.url).port
    const growRun = await startGrow('--selector', 'app=web', '--to', '4Gi')
    await pollUntil(async () => growRun.out().includes('web-0: '))
    await server.kill()
    server = await startServer({
      dataDir: join(dir, 'data'),
      flags: ['--driver-socket', driver.endpoint, '--listen', `127.0.0.1:${port}`],
    })
    const { code, out } = await growRun.ended
    expect(out).toContain('All 3 claims have the requested size.')
    expect(code).toBe(0)
    expect(await getSizes(names)).toEqual(['4Gi', '4Gi', '4Gi'])
    await driver.control.setRules([])
  })

  it('PLUS-13 exits with 2 on a usage error', async () => {
    const { code, err } = await runGrow('--to', '2Gi')
    expect(code).toBe(2)
    expect(err).toBe('stowage: No claims are selected: specify names of claims or --selector.\n')
  })
})
