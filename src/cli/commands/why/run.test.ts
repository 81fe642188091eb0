// Runs `stowage why` as users with different permissions against an API server on a port.

import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { operationKind } from '../../../api/kinds/operation/operation.ts'
import { ADMIN, createServerFixture, type Json, type ServerFixtureOptions } from '../../../apiserver/server.fixture.ts'
import { systemClock } from '../../../base/clock.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runCommandLine } from '../../run.ts'
import { maskChangingValues, printDiagnosis } from './run.ts'

/** A server with RBAC. A bearer token authenticates the user viewer or guest; other requests are those of an administrator. */
const SERVER: ServerFixtureOptions = {
  answers: 'stowage',
  usesRbac: true,
  authenticator: {
    authenticate({ authorization }) {
      const name = /^Bearer (viewer|guest)$/.exec(authorization ?? '')?.[1]
      const groups = [...(name === 'viewer' ? ['stowage:viewers'] : []), 'system:authenticated']
      return { is: 'authenticated', user: name ? { name, groups } : ADMIN }
    },
    authenticateToken: () => undefined,
  },
}

const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims'

/** A cluster in which the provisioner fails to create the volume of the claim `orders`. */
async function startCluster() {
  const program = await startProgramFixture(SERVER)
  const { api } = program
  const post = async (path: string, body: object): Promise<void> => {
    const { status, json } = await api.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
  }
  await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
  await post('/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: 'fast' }, provisioner: 'disk.example' })
  const resources = { requests: { storage: '1Gi' } }
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources }
  await post(CLAIMS, { metadata: { name: 'orders' }, spec })
  await post('/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
    metadata: { name: 'guest' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'guest' }],
    roleRef: { kind: 'ClusterRole', apiGroup: 'rbac.authorization.k8s.io', name: 'view' },
  })
  const nowMs = systemClock().nowMs()
  api.operations.applyLocal({ changed: [failedProvision(nowMs)], removed: [] })
  await api.waitUntil(async () => (await program.client.list(operationKind)).items.length === 1, 'the operation')
  const why = async (user: 'viewer' | 'guest', object: string, ...flags: string[]) => {
    const kubeconfig = await program.writeKubeconfig(user)
    let out = ''
    let err = ''
    const code = await runCommandLine(['node', 'stowage', 'why', object, '--kubeconfig', kubeconfig, ...flags], {
      clock: systemClock(),
      random: () => 0.5,
      signal: program.signal,
      write(text) {
        out += text
      },
      writeError(text) {
        err += text
      },
    })
    return { code, out, err }
  }
  return { why }
}

const failedProvision = (nowMs: number) => ({
  metadata: { namespace: 'shop', name: 'orders.0123456789', uid: 'u' },
  object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders' },
  component: 'provisioner',
  process: 'stowage@host:1',
  operation: 'Provision',
  phase: 'Retrying' as const,
  reason: 'ResourceExhausted',
  message: 'the pool is full',
  attempts: 4,
  lastAttempt: new Date(nowMs - 5_000).toISOString(),
  nextAttempt: new Date(nowMs + 60_000).toISOString(),
  driverAnswer: { driver: 'disk.example', method: 'CreateVolume', code: 'ResourceExhausted' },
})

describe('stowage why', () => {
  it("PLUS-1 shows a viewer which component retries, the driver's last response, and the time of the next attempt", async () => {
    const { why } = await startCluster()
    const { code, out } = await why('viewer', 'pvc/orders', '-n', 'shop', '-o', 'json')
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      state: 'failed',
      reason: 'ProvisioningFailed',
      children: [
        {
          subject: { kind: 'Component', name: 'provisioner' },
          state: 'failed',
          reason: 'LastAnswer',
          numbers: {
            ...{ operation: 'Provision', phase: 'Retrying', process: 'stowage@host:1', attempts: 4 },
            ...{ driver: 'disk.example', method: 'CreateVolume', code: 'ResourceExhausted', isFinal: 'true' },
            nextAttemptSeconds: expect.any(Number),
          },
          fixes: [{ command: 'stowage retry pvc/orders -n shop' }],
        },
      ],
    })
    const text = await why('viewer', 'pvc/orders', '-n', 'shop')
    expect(text.out.replace(/\d+ s\b/g, 'N s')).toBe(
      '✖ pvc/orders: the provisioner disk.example could not create the volume [ProvisioningFailed]\n' +
        '└─✖ Component/provisioner: Provision: attempt 4 failed N s ago: the pool is full; CreateVolume of disk.example ' +
        'returned ResourceExhausted; final: nothing was changed, and the call is repeated; the next attempt starts in N s [LastAnswer]\n' +
        '    → after removing the cause, retry at once: stowage retry pvc/orders -n shop\n',
    )
    const yaml = await why('viewer', 'pvc/orders', '-n', 'shop', '-o', 'yaml')
    expect(parse(yaml.out)).toMatchObject({ reason: 'ProvisioningFailed', children: [{ reason: 'LastAnswer' }] })
  })

  it('PLUS-1 names the rules that a user of one namespace lacks, and prints the causes that are known without them', async () => {
    const { why } = await startCluster()
    const { code, out } = await why('guest', 'pvc/orders', '-n', 'shop', '-o', 'json')
    expect(code).toBe(1)
    const diagnosis: Json = JSON.parse(out)
    expect(diagnosis).toMatchObject({
      reason: 'MissingRights',
      message:
        'the claim is Pending; finding the cause requires permission to list persistentvolumes, list storageclasses.storage.k8s.io',
      children: [
        { reason: 'LastAnswer', numbers: { attempts: 4, code: 'ResourceExhausted' } },
        { state: 'unknown', message: expect.stringMatching(/^there may be other causes; .* list nodes/) },
      ],
    })
    const node = await why('guest', 'node/node-1')
    expect(node).toMatchObject({
      code: 2,
      err: 'stowage: node/node-1 cannot be read: you need permission to list nodes\n',
    })
  })

  it('PLUS-1 exits with 2 for an object that does not exist, and for a kind without an explanation', async () => {
    const { why } = await startCluster()
    expect(await why('viewer', 'pvc/order', '-n', 'shop')).toEqual({
      code: 2,
      out: '',
      err: 'stowage: pvc/order does not exist in the namespace shop. Similar names: orders.\n',
    })
    expect(await why('viewer', 'secret/orders')).toEqual({
      code: 2,
      out: '',
      err: 'stowage: The kind "secret" has no explanation: expected pvc/NAME, pod/NAME, pv/NAME or node/NAME\n',
    })
  })

  it('PLUS-1 with --watch prints a document per change, and ends when the claim is deleted', async () => {
    const api = await createServerFixture({ answers: 'stowage' })
    const post = async (path: string, body: object) => expect((await api.post(path, body)).status).toBe(201)
    await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    const resources = { requests: { storage: '1Gi' } }
    const claim = { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources }
    await post(CLAIMS, { metadata: { name: 'orders', finalizers: ['example.com/hold'] }, spec: claim })
    let out = ''
    let err = ''
    const target = { kind: 'pvc', namespace: 'shop', name: 'orders' } as const
    const following = printDiagnosis(
      api.client(),
      target,
      { output: 'yaml', watch: true },
      {
        clock: api.clock,
        signal: new AbortController().signal,
        hasColors: false,
        write(text) {
          out += text
        },
        writeError(text) {
          err += text
        },
      },
    )
    await api.waitUntil(() => out.includes('StorageClassNotFound'), 'the first tree')
    await api.delete(`${CLAIMS}/orders`)
    await api.waitUntil(() => out.includes('BeingDeleted'), 'the second tree')
    await api.patch(`${CLAIMS}/orders`, { metadata: { finalizers: null } }, 'merge')
    await api.advanceUntilSettled(following)
    expect(parseAllDocuments(out).map((document) => document.toJS().reason)).toEqual([
      'StorageClassNotFound',
      'BeingDeleted',
    ])
    expect(err).toBe('stowage: pvc/orders was deleted\n')
  })
})

describe('maskChangingValues', () => {
  it('PLUS-1 masks ages in every unit, seconds in fields, and numbers of attempts', () => {
    const text = (age: string, seconds: number, attempts: number) =>
      `attempt ${attempts} failed ${age} ago; 5Gi of 10Gi\n{"nextAttemptSeconds":${seconds},"attempts":${attempts}}\n`
    const masked = maskChangingValues(text('59 s', 3, 4))
    for (const age of ['2 s', '119 s', '2 min', '3 h', '12 d']) {
      expect(maskChangingValues(text(age, 60, 17)), age).toBe(masked)
    }
    expect(masked).toContain('5Gi of 10Gi')
  })
})
