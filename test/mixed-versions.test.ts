// Tests processes of the previous release together with this version: two servers on one etcd, servers that use a data
// directory one after the other, and the components of the previous release on a server of this version.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from './helpers/etcd.ts'
import {
  CLAIMS,
  claimSpec,
  createClaim,
  createClass,
  createNode,
  createPod,
  driver,
  get,
  listDriverVolumes,
  PODS,
  patch,
  pollUntil,
  remove,
  startCommand,
  startServerWithDriver,
  stopAll,
  VOLUMES,
  waitForCapacities,
  waitUntilScheduled,
} from './helpers/pools-cluster.ts'
import { unpackRelease } from './helpers/release.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { watchFrom } from './helpers/watch.ts'

const PREVIOUS_RELEASE = '0.1.0'

const skipMessage = etcdSkipReason()

describe.skipIf(skipMessage)(
  `servers of two versions on one etcd${skipMessage ? ` (skipped: ${skipMessage})` : ''}`,
  () => {
    let dir: string
    let etcd: RunningEtcd
    const servers: RunningServer[] = []
    beforeEach(async () => {
      dir = await mkdtemp(join(tmpdir(), 'stowage-mixed-versions-'))
      etcd = await startEtcd()
    })
    afterEach(async () => {
      await Promise.all(servers.splice(0).map((server) => server.kill()))
      await etcd.remove()
      await rm(dir, { recursive: true, force: true })
    })

    interface StartOptions {
      readonly program?: string
      readonly prefix?: string
      readonly flags?: readonly string[]
    }

    async function start(name: string, { prefix = 'test', flags = [], ...options }: StartOptions = {}) {
      const pkiDir = join(dir, 'pki')
      const storeFlags = ['--store', `etcd://${etcd.endpoints.join(',')}/${prefix}`, '--pki-dir', pkiDir]
      const server = await startServer({
        dataDir: join(dir, name),
        pkiDir,
        command: 'server',
        flags: [...storeFlags, ...flags],
        ...options,
      })
      servers.push(server)
      return server
    }

    it("SYS-28 read, watch and update each other's objects if the previous release created the store", async () => {
      const a = await start('previous', { program: await unpackRelease(PREVIOUS_RELEASE) })
      const b = await start('current')
      const versions = [(await a.call('GET', '/version')).json, (await b.call('GET', '/version')).json]
      expect(JSON.stringify(versions[0])).not.toBe(JSON.stringify(versions[1]))

      for (const [kind, folder] of [
        ['ConfigMap', 'configmaps'],
        ['Secret', 'secrets'],
      ] as const) {
        const path = `/api/v1/namespaces/default/${folder}`
        const content = (n: number) =>
          kind === 'Secret' ? { stringData: { n: String(n) } } : { data: { n: String(n) } }
        const storedValue = (n: number) => (kind === 'Secret' ? Buffer.from(String(n)).toString('base64') : String(n))
        const { json } = await a.call('GET', path)
        const watch = watchFrom(b, path, Number(json.metadata.resourceVersion))
        let lastResponse = await a.call('POST', path, {
          kind,
          apiVersion: 'v1',
          metadata: { name: 'm' },
          ...content(0),
        })
        expect(lastResponse.status).toBe(201)
        for (let n = 1; n <= 10; n++) {
          const [writer, reader] = n % 2 ? [b, a] : [a, b]
          const { resourceVersion } = lastResponse.json.metadata
          const update = { kind, apiVersion: 'v1', metadata: { name: 'm', resourceVersion }, ...content(n) }
          lastResponse = await writer.call('PUT', `${path}/m`, update)
          expect(lastResponse.status).toBe(200)
          expect((await reader.call('GET', `${path}/m`)).json.data).toEqual({ n: storedValue(n) })
          expect((await reader.call('PUT', `${path}/m`, update)).status).toBe(409)
        }
        expect((await a.call('DELETE', `${path}/m`)).status).toBe(200)
        expect((await b.call('GET', `${path}/m`)).status).toBe(404)
        await watch.waitUntil((events) => events.some(({ type }) => type === 'DELETED'))
        watch.close()
        const types = (await watch.whenEnded()).map(({ type }) => type)
        expect(types).toEqual(['ADDED', ...Array(10).fill('MODIFIED'), 'DELETED'])
      }
    })

    it('SYS-28 do not start with the previous release if this version created the store or upgraded its format', async () => {
      const program = await unpackRelease(PREVIOUS_RELEASE)
      const previousServer = await start('previous', { program, prefix: 'upgraded' })
      const path = '/api/v1/namespaces/default/configmaps'
      const create = async (server: RunningServer, name: string) =>
        expect((await server.call('POST', path, { metadata: { name } })).status).toBe(201)
      await create(previousServer, 'old')
      await previousServer.stop()
      const currentServer = await start('current', { prefix: 'upgraded', flags: ['--upgrade-etcd-format'] })
      await create(currentServer, 'new')
      expect((await currentServer.call('GET', `${path}/old`)).status).toBe(200)
      await expect(start('previous', { program, prefix: 'upgraded' })).rejects.toThrow('is a store of format 4')
      await start('current', { prefix: 'created' })
      await expect(start('previous', { program, prefix: 'created' })).rejects.toThrow('is a store of format 4')
    })

    it('SYS-28 keep all objects when the servers are replaced one after the other, and when they are rolled back', async () => {
      const previousProgram = await unpackRelease(PREVIOUS_RELEASE)
      const path = '/api/v1/namespaces/default/configmaps'
      const listData = async (server: RunningServer) =>
        (await server.call('GET', path)).json.items
          .filter(({ metadata }: any) => metadata.name.startsWith('by-'))
          .map(({ metadata, data }: any) => [metadata.name, metadata.resourceVersion, data])
      const write = async (server: RunningServer, name: string) =>
        expect((await server.call('POST', path, { metadata: { name }, data: { name } })).status).toBe(201)

      const a = await start('a', { program: previousProgram })
      const b = await start('b', { program: previousProgram })
      await write(a, 'by-previous')
      await a.stop()
      const upgradedServer = await start('a')
      await write(upgradedServer, 'by-first-upgraded')
      await b.stop()
      const secondUpgradedServer = await start('b')
      await write(secondUpgradedServer, 'by-second-upgraded')
      const objects = await listData(secondUpgradedServer)
      expect(objects).toHaveLength(3)
      await upgradedServer.stop()
      const rolledBackServer = await start('a', { program: previousProgram })
      expect(await listData(rolledBackServer)).toEqual(objects)
      await secondUpgradedServer.stop()
      await write(rolledBackServer, 'by-rolled-back')
      expect(await listData(rolledBackServer)).toHaveLength(4)
    })
  },
)

describe('the data directory of the previous release', () => {
  it('SYS-28 is migrated by this version with all objects, and is then rejected by the previous release', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'stowage-mixed-versions-'))
    const program = await unpackRelease(PREVIOUS_RELEASE)
    const paths = ['configmaps', 'secrets'].map((plural) => `/api/v1/namespaces/default/${plural}`)
    const readAll = async (server: RunningServer) =>
      Promise.all(paths.map(async (path) => (await server.call('GET', path)).json.items))
    const runningServers: RunningServer[] = []
    const start = async (options: { program?: string } = {}) => {
      const server = await startServer({ dataDir, command: 'server', ...options })
      runningServers.push(server)
      return server
    }
    try {
      const previousServer = await start({ program })
      for (const [index, path] of paths.entries()) {
        const content = index === 0 ? { data: { a: 'b' } } : { stringData: { a: 'b' } }
        for (let n = 0; n < 20; n++) {
          expect((await previousServer.call('POST', path, { metadata: { name: `o${n}` }, ...content })).status).toBe(
            201,
          )
        }
      }
      const writtenObjects = await readAll(previousServer)
      await previousServer.stop()
      const currentServer = await start()
      expect(await readAll(currentServer)).toEqual(writtenObjects)
      await currentServer.stop()
      await expect(start({ program })).rejects.toThrow('format 3')
      expect(await readAll(await start())).toEqual(writtenObjects)
    } finally {
      for (const server of runningServers) await server.kill().catch(() => {})
      await rm(dataDir, { recursive: true, force: true })
    }
  })
})

describe('components of the previous release on a server of this version', () => {
  afterEach(stopAll)

  it('SYS-28 schedule a pod, provision, expand and delete its volume', async () => {
    const previousProgram = await unpackRelease(PREVIOUS_RELEASE)
    const startPrevious = (...args: string[]) => startCommand(args, {}, previousProgram)
    await startServerWithDriver({ segments: ['host=n1'], sizeGi: 20 })
    await startPrevious('controllers', '--no-leader-election')
    await startPrevious('scheduler', '--no-leader-election')
    await startPrevious(
      ...['provisioner', '--csi-address', driver.endpoint, '--strict-topology', 'true'],
      ...['--enable-capacity', 'central', '--capacity-ownerref-level', '-1'],
    )
    await startPrevious('resizer', '--csi-address', driver.endpoint)
    await createClass('local', { allowVolumeExpansion: true })
    await createNode('n1', { host: 'n1' })
    await waitForCapacities('local n1: 20Gi')
    await createClaim('data', 1, 'local')
    await createPod('p', { claims: ['data'] })
    expect(await waitUntilScheduled('p')).toBe('n1')
    const volumeName = await pollUntil(async () => {
      const { spec, status } = await get(`${CLAIMS}/data`)
      return status.phase === 'Bound' && spec.volumeName
    })
    const { resources } = claimSpec(2, 'local')
    await patch(`${CLAIMS}/data`, { spec: { resources } })
    await pollUntil(async () => (await get(`${VOLUMES}/${volumeName}`)).spec.capacity.storage === '2Gi')
    await remove(`${PODS}/p`)
    await remove(`${CLAIMS}/data`)
    await pollUntil(async () => (await listDriverVolumes()).length === 0)
    await pollUntil(async () => (await get(`${VOLUMES}/${volumeName}`)).code === 404)
  })
})
