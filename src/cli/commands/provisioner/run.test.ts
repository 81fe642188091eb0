// Tests the complete process with an API server and a fake driver on sockets.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { ALL_KINDS } from '../../../api/kinds/index.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { systemClock } from '../../../base/clock.ts'
import { type Logger, silentLog } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import type { FakeSettings } from '../../../csi/fake/index.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { readProvisionerSettings } from './command.ts'
import { runProvisioner } from './run.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const DRIVER = 'fake.stowage.example'
const WAIT = { timeout: 20_000, interval: 20 }

interface RunOptions {
  readonly driver?: Partial<FakeSettings>
  readonly flags?: Record<string, string>
  readonly log?: Logger
  readonly env?: Record<string, string>
}

async function startCluster({ driver = {}, flags = {}, log = silentLog, env = {} }: RunOptions = {}) {
  const program = await startProgramFixture()
  const { api, client, kubeconfig, signal } = program
  const { fake, endpoint } = await program.serveFakeDriver(driver)
  program.runOtherControllers()
  const settings = readProvisionerSettings({
    csiAddress: endpoint,
    kubeconfig,
    retryIntervalStart: '10ms',
    kubeApiQps: '-1',
    ...flags,
  })
  const clock = systemClock()
  const write = () => {}
  const provisionerRun = program.track(
    runProvisioner({ settings, clock, random: Math.random, log, signal, env, write }),
  )
  return { api, client, fake, running: provisionerRun, stop: program.abort }
}

type Api = Awaited<ReturnType<typeof startCluster>>['api']
const postClass = (api: Api, name: string, parameters: object = {}) =>
  api.post(CLASSES, { metadata: { name }, provisioner: DRIVER, parameters })
async function createClassWithSecret(api: Api, name: string, password = 'x-y-z'): Promise<void> {
  await api.post('/api/v1/namespaces/default/secrets', { metadata: { name: 'creds' }, stringData: { password } })
  await postClass(api, name, {
    'csi.storage.k8s.io/secret-name': 'creds',
    'csi.storage.k8s.io/secret-namespace': 'default',
  })
}
const postClaim = (api: Api, name: string, storageClassName: string, spec: object = {}) =>
  api.post(CLAIMS, {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName,
      ...spec,
    },
  })
const waitUntilBound = (api: Api, name: string) =>
  vi.waitFor(async () => {
    const { json } = await api.get(`${CLAIMS}/${name}`)
    expect(json.status.phase).toBe('Bound')
    return json
  }, WAIT)
const waitUntilDeleted = (api: Api, path: string) =>
  vi.waitFor(async () => expect((await api.get(path)).status).toBe(404), WAIT)

describe('stowage provisioner', () => {
  it('PROV-9 PROV-19 provisions volumes of two classes with their parameters, and deletes them with their claims', async () => {
    const pools = [
      { name: 'ssd', capacityBytes: 2 ** 40 },
      { name: 'tape', capacityBytes: 2 ** 40 },
    ]
    const { api, fake } = await startCluster({ driver: { pools } })
    await postClass(api, 'fast', { pool: 'ssd' })
    await postClass(api, 'slow', { pool: 'tape' })
    await postClaim(api, 'a', 'fast')
    await postClaim(api, 'b', 'slow')
    const [a] = await Promise.all([waitUntilBound(api, 'a'), waitUntilBound(api, 'b')])
    expect(
      Object.values(fake.state.volumes)
        .map(({ pool }) => pool)
        .sort(),
    ).toEqual(['ssd', 'tape'])
    const { json: volume } = await api.get(`/api/v1/persistentvolumes/${a.spec.volumeName}`)
    expect(volume.spec.csi).toMatchObject({ driver: DRIVER })
    expect(volume.metadata.annotations['pv.kubernetes.io/provisioned-by']).toBe(DRIVER)

    await api.delete(`${CLAIMS}/a`)
    await waitUntilDeleted(api, `/api/v1/persistentvolumes/${a.spec.volumeName}`)
    expect(Object.values(fake.state.volumes).map(({ pool }) => pool)).toEqual(['tape'])
    expect(fake.record.overlaps).toEqual([])
  })

  it('PROV-16 writes no credential into objects, events, logs or metrics', async () => {
    const secret = 'hunter2-of-the-storage'
    const lines: string[] = []
    const write = (fields: object, message: string) =>
      void lines.push(JSON.stringify([serializeErrors(fields), message]))
    const log = { debug: write, info: write, warn: write, error: write }
    const { api, client, fake } = await startCluster({
      driver: { secretKeys: ['password'] },
      log,
      flags: { httpEndpoint: '127.0.0.1:0' },
    })
    const leakSecret = (method: string) =>
      ({
        method,
        times: 2,
        effect: { do: 'fail', code: 'UNAUTHENTICATED', message: `bad password ${secret}!` },
      }) as const
    fake.script.setRules([leakSecret('CreateVolume'), leakSecret('DeleteVolume')])
    await createClassWithSecret(api, 'fast', secret)
    await postClaim(api, 'orders', 'fast')
    const claim = await waitUntilBound(api, 'orders')
    const volumePath = `/api/v1/persistentvolumes/${claim.spec.volumeName}`
    const { json: volume } = await api.get(volumePath)
    expect(JSON.stringify(volume.metadata.annotations)).not.toContain('creds')
    const objectsBefore = await dumpObjects(client)
    await api.delete(`${CLAIMS}/orders`)
    await waitUntilDeleted(api, volumePath)
    expect(fake.record.calls.filter(({ secretKeys }) => secretKeys.includes('password'))).toHaveLength(6)
    await vi.waitFor(async () => {
      const events = (await dumpObjects(client)).filter((text) => text.includes('bad password'))
      expect(events.some((text) => text.includes('VolumeFailedDelete'))).toBe(true)
      expect(events.some((text) => text.includes('ProvisioningFailed'))).toBe(true)
    }, WAIT)

    const url = lines.map((line) => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]).find(Boolean)!
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toContain('csi_sidecar_operations_seconds_count{driver_name="fake.stowage.example"')
    expect(metrics).toMatch(/controller_persistentvolumeclaim_provision_failed_total\{.*\} 2/)
    const encodedSecret = Buffer.from(secret).toString('base64')
    for (const text of [...objectsBefore, ...(await dumpObjects(client)), ...lines, metrics]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(encodedSecret)
    }
  })

  it('PROV-16 reports that the class with the credentials is missing, and continues when it is recreated', async () => {
    const { api, fake } = await startCluster({ driver: { secretKeys: ['password'] } })
    await createClassWithSecret(api, 'fast')
    await postClaim(api, 'orders', 'fast')
    const { spec } = await waitUntilBound(api, 'orders')
    await api.delete(`${CLASSES}/fast`)
    await api.delete(`${CLAIMS}/orders`)
    await vi.waitFor(async () => {
      const { json } = await api.get('/api/v1/namespaces/default/events')
      const messages = json.items.map(({ message }: { message: string }) => message).join()
      expect(messages).toContain('No credentials were sent, because class "fast" does not exist')
    }, WAIT)
    expect(Object.keys(fake.state.volumes)).toHaveLength(1)
    expect((await api.get(`/api/v1/persistentvolumes/${spec.volumeName}`)).status).toBe(200)
    await createClassWithSecret(api, 'fast')
    await waitUntilDeleted(api, `/api/v1/persistentvolumes/${spec.volumeName}`)
    expect(fake.state.volumes).toEqual({})
  })

  it('PROV-16 deletes volumes without their class with --provisioner-secret-dir', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'stowage-credentials-'))
    onTestFinished(() => rm(dir, { recursive: true }))
    await writeFile(join(dir, 'password'), 'own-password')
    const { api, fake } = await startCluster({
      driver: { secretKeys: ['password'] },
      flags: { provisionerSecretDir: dir },
    })
    await postClass(api, 'fast')
    await postClaim(api, 'orders', 'fast')
    const { spec } = await waitUntilBound(api, 'orders')
    await api.delete(`${CLASSES}/fast`)
    await api.delete(`${CLAIMS}/orders`)
    await waitUntilDeleted(api, `/api/v1/persistentvolumes/${spec.volumeName}`)
    expect(fake.state.volumes).toEqual({})
  })

  it('SYS-8 uses the lease of the upstream provisioner and reports its health', async () => {
    const lines: string[] = []
    const log = { ...silentLog, info: (fields: object) => void lines.push(JSON.stringify(fields)) }
    const { api } = await startCluster({
      log,
      flags: { leaderElection: 'true', httpEndpoint: '127.0.0.1:0' },
      env: { POD_NAMESPACE: 'kube-system' },
    })
    await postClass(api, 'fast')
    await postClaim(api, 'orders', 'fast')
    await waitUntilBound(api, 'orders')
    const lease = await api.get('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fake-stowage-example')
    expect(lease.json.spec.holderIdentity).not.toBe('')
    const url = lines.map((line) => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]).find(Boolean)!
    expect((await fetch(`${url}/healthz/leader-election`)).status).toBe(200)
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('leader_election_master_status')
    expect((await fetch(`${url}/nope`)).status).toBe(404)
  })

  it('PROV-9 exits with an error if the driver cannot create volumes', async () => {
    const { running: provisionerRun } = await startCluster({ driver: { controller: ['GET_CAPACITY'] } })
    await expect(provisionerRun).rejects.toThrow(
      /fake\.stowage\.example at .*csi\.sock cannot create volumes: .*CREATE_DELETE_VOLUME/,
    )
  })

  it('removes its finalizers and journal entries with --release, except those of deleted claims whose volumes may exist', async () => {
    const program = await startProgramFixture()
    const { api, client, kubeconfig, signal } = program
    const { endpoint } = await program.serveFakeDriver({})
    const finalizers = [`provisioning.stowage.dev/${DRIVER}`]
    const annotations = { 'volume.kubernetes.io/storage-provisioner': DRIVER }
    const createClaim = (name: string, metadata: object = {}) =>
      api.post(CLAIMS, {
        metadata: { name, annotations, finalizers, ...metadata },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      })
    await createClaim('pending')
    await createClaim('of-a-node', { finalizers: [`${finalizers[0]}.node-1`] })
    await createClaim('of-another', { annotations: {}, finalizers: ['provisioning.stowage.dev/other'] })
    const { json: finishedClaim } = await createClaim('finished')
    await createClaim('lost')
    await api.post('/api/v1/persistentvolumes', {
      metadata: { name: 'by-upstream' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: DRIVER, volumeHandle: 'v1' },
        claimRef: { namespace: 'default', name: 'finished', uid: finishedClaim.metadata.uid },
      },
    })
    for (const name of ['finished', 'lost']) await api.delete(`${CLAIMS}/${name}`)
    const { json: journaledClaim } = await createClaim('journaled', { finalizers: [] })
    const entryOf = (claimName: string, uid: string) => ({
      metadata: { namespace: 'default', name: claimName, uid },
      spec: {},
    })
    const entries = {
      [journaledClaim.metadata.uid]: entryOf('journaled', journaledClaim.metadata.uid),
      gone: entryOf('gone', 'gone'),
    }
    const lease = { namespace: 'default', name: 'stowage-intents-fake-stowage-example' }
    const intents = { 'provisioning.stowage.dev/intents': JSON.stringify(entries) }
    await client.create(leaseKind, { metadata: { ...lease, annotations: intents } })
    let output = ''
    const write = (text: string) => {
      output += text
    }
    const settings = readProvisionerSettings({ csiAddress: endpoint, kubeconfig, release: 'true' })
    const clock = systemClock()
    const deps = { clock, random: Math.random, log: silentLog, signal, env: {}, write }
    await expect(runProvisioner({ settings, ...deps })).rejects.toThrow(
      /2 claims are deleted, .*default\/lost: volume pvc-\S+, the finalizer "provisioning\.stowage\.dev\/fake.*default\/gone: volume pvc-gone, the entry "gone"/s,
    )
    expect(output).toBe(`Removed the intents of Stowage for 4 claims of ${DRIVER}.\n`)
    const { annotations: keptIntents } = (await client.get(leaseKind, lease)).metadata
    expect(Object.keys(JSON.parse(keptIntents!['provisioning.stowage.dev/intents']!))).toEqual(['gone'])
    const { items } = await client.list(persistentVolumeClaimKind, { namespace: 'default' })
    const claimsWithFinalizers = items.filter(({ metadata }) =>
      metadata.finalizers?.some((name) => name.startsWith('provisioning.')),
    )
    expect(claimsWithFinalizers.map(({ metadata }) => metadata.name)).toEqual(['lost', 'of-another'])
  })

  it('stops on its signal while it waits for its driver', async () => {
    const { running: provisionerRun, stop } = await startCluster({
      flags: { csiAddress: '/nonexistent-stowage/csi.sock' },
    })
    stop()
    await expect(provisionerRun).resolves.toBeUndefined()
  })
})

/** Returns all objects except secrets as JSON. */
async function dumpObjects(client: Client): Promise<string[]> {
  const kinds = ALL_KINDS.filter((kind) => !kind.isReview && !kind.isForeign && kind.kind !== 'Secret')
  const lists = await Promise.all(kinds.map((kind) => client.list(kind)))
  return lists.flatMap(({ items }) => items.map((item) => JSON.stringify(item)))
}

/** Converts errors to objects, because JSON.stringify omits their message and stack. */
const serializeErrors = (fields: object): object =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? { message: value.message, stack: value.stack } : value,
    ]),
  )
