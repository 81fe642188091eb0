// `stowage grow` as a process, against a real server and a CSI driver in its own process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build.ts'
import { type RunningFakeDriver, startFakeDriver } from './helpers/fake-driver.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const DRIVER = 'disks.example.com'
const GI = 1024 ** 3
const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims'

describe('stowage grow as a process', () => {
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

  const boundClaims = async (app: string, count: number) => {
    const names = Array.from({ length: count }, (_, index) => `${app}-${index}`)
    for (const name of names) {
      const spec = {
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Block', // devices: no file system that a node would have to expand
        storageClassName: 'disks',
        resources: { requests: { storage: '1Gi' } },
      }
      await create(CLAIMS, { metadata: { name, labels: { app } }, spec })
    }
    for (const name of names) await until(async () => (await claim(name)).status.phase === 'Bound')
    return names
  }
  const claim = async (name: string) => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const sizes = async (names: readonly string[]) =>
    Promise.all(names.map(async (name) => (await claim(name)).status.capacity.storage))
  /** Polls until the test's own timeout. */
  async function until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  async function start(...args: string[]) {
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
  const grow = async (...args: string[]) => (await start(...args)).ended

  it('PLUS-13 expands a set of claims and reports it', async () => {
    const names = await boundClaims('db', 3)
    const { code, out, err } = await grow('--selector', 'app=db', '--to', '2Gi')
    expect(err).toBe('')
    expect(code).toBe(0)
    expect(await sizes(names)).toEqual(['2Gi', '2Gi', '2Gi'])
    expect(out).toContain('shop/db-0: grown to 2Gi\n')
    expect(out).toContain('db-2   1Gi   2Gi  grown\n\nAll 3 claims have the requested size.\n')
    const held = Object.values((await driver.control.inspect()).state.volumes)
    expect(held.map(({ capacityBytes }) => capacityBytes)).toEqual([2 * GI, 2 * GI, 2 * GI])
  })

  it('PLUS-13 stops at a size that the driver refuses, prints its message, and exits with 1', async () => {
    const names = await boundClaims('big', 2)
    const { code, out } = await grow('--selector', 'app=big', '--to', '50Gi', '--output', 'json')
    expect(code).toBe(1)
    const { claims } = JSON.parse(out)
    expect(claims).toMatchObject([
      { name: 'big-0', from: '1Gi', to: '50Gi', result: 'failed' },
      { name: 'big-1', result: 'not begun' },
    ])
    expect(claims[0].message).toContain('OutOfRange')
    expect(await sizes(names)).toEqual(['1Gi', '1Gi'])
  })

  it('PLUS-13 with --by expands every claim once, even if killed, interrupted and run again', async () => {
    const names = await boundClaims('log', 4)
    await driver.control.setRules([{ method: 'ControllerExpandVolume', afterMs: 300 }])
    for (const [signal, size] of [
      ['SIGINT', '2Gi'],
      ['SIGKILL', '3Gi'],
    ] as const) {
      const first = await start('--selector', 'app=log', '--by', '1Gi')
      await until(async () => first.out().includes('log-1: '))
      first.child.kill(signal)
      const { code, out } = await first.ended
      expect(code).toBe(signal === 'SIGINT' ? 130 : null)
      if (signal === 'SIGINT') expect(out).toContain('Run the same command again to continue.')
      const again = await grow('--selector', 'app=log', '--by', '1Gi')
      expect(again.out).toContain('Resuming an interrupted run.')
      expect(again.code).toBe(0)
      expect(await sizes(names)).toEqual(names.map(() => size))
    }
    await driver.control.setRules([])
  })

  it('PLUS-13 continues through a restart of the server', async () => {
    const names = await boundClaims('web', 3)
    await driver.control.setRules([{ method: 'ControllerExpandVolume', afterMs: 500 }])
    const port = new URL(server.url).port
    const running = await start('--selector', 'app=web', '--to', '4Gi')
    await until(async () => running.out().includes('web-0: '))
    await server.kill()
    server = await startServer({
      dataDir: join(dir, 'data'),
      flags: ['--driver-socket', driver.endpoint, '--listen', `127.0.0.1:${port}`],
    })
    const { code, out } = await running.ended
    expect(out).toContain('All 3 claims have the requested size.')
    expect(code).toBe(0)
    expect(await sizes(names)).toEqual(['4Gi', '4Gi', '4Gi'])
    await driver.control.setRules([])
  })

  it('PLUS-13 exits with 2 on a usage error', async () => {
    const { code, err } = await grow('--to', '2Gi')
    expect(code).toBe(2)
    expect(err).toBe('stowage: No claims are selected: specify names of claims or --selector.\n')
  })
})
