import { beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { readRetryRequest, requestRetry } from './run.ts'

let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture({ answers: 'stowage' })
  await server.client().create(persistentVolumeClaimKind, {
    metadata: { namespace: 'default', name: 'orders' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })
})

async function retry(object: string, flags: { dryRun?: boolean; output?: 'json' } = {}): Promise<string> {
  let out = ''
  const request = readRetryRequest(object, { namespace: 'default', output: 'text', ...flags })
  await requestRetry(server.client(), request, {
    clock: server.clock,
    signal: new AbortController().signal,
    write: (text) => {
      out += text
    },
  })
  return out
}

const readAnnotation = async () =>
  (await server.client().get(persistentVolumeClaimKind, { namespace: 'default', name: 'orders' })).metadata
    .annotations?.['stowage.dev/retry-requested']

async function putOperation(): Promise<void> {
  const { revision } = server.operations.store
  const operation = {
    metadata: { namespace: 'default', name: 'orders.0123456789', uid: 'u' },
    object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'orders' },
    component: 'provisioner',
    process: 'p',
    operation: 'Provision',
    phase: 'Retrying' as const,
    reason: 'ResourceExhausted',
    message: 'the pool is full',
  }
  server.operations.applyLocal({ changed: [operation], removed: [] })
  await server.waitUntil(() => server.operations.store.revision > revision, 'the operation')
}

describe('stowage retry', () => {
  it("PLUS-15 sets the annotation to the current time, and prints the object's operations", async () => {
    await putOperation()
    expect(await retry('pvc/orders')).toBe(
      'persistentvolumeclaim/orders in namespace default: retry requested\n' +
        '  Provision by provisioner (Retrying, ResourceExhausted): the pool is full\n',
    )
    expect(await readAnnotation()).toBe(new Date(server.clock.nowMs()).toISOString())
  })

  it('PLUS-15 prints JSON, and changes nothing in a dry run', async () => {
    await putOperation()
    expect(JSON.parse(await retry('persistentvolumeclaims/orders', { dryRun: true, output: 'json' }))).toMatchObject({
      kind: 'PersistentVolumeClaim',
      namespace: 'default',
      name: 'orders',
      isDryRun: true,
      operations: [{ operation: 'Provision', phase: 'Retrying' }],
    })
    expect(await readAnnotation()).toBe(undefined)
  })

  it('PLUS-15 reports that the object has no operation if there is none', async () => {
    expect(await retry('pvc/orders')).toContain('No operation of this object is in progress or waiting.')
  })

  it('PLUS-15 names similar objects if none has this name', async () => {
    await expect(retry('pvc/order')).rejects.toThrow(
      'There is no persistentvolumeclaim "order" in namespace "default". Similar names: orders.',
    )
    await expect(retry('pvc/odrers')).rejects.toThrow('Similar names: orders.')
    await expect(retry('pv/none')).rejects.toThrow('There is no persistentvolume "none".')
  })

  it.each([
    ['orders', 'expected KIND/NAME'],
    ['pvc/', 'expected KIND/NAME'],
    ['pvc/a/b', 'expected KIND/NAME'],
    ['secret/a', 'unknown kind "secret". Kinds: pvc, pv, pod, va, node, vac.'],
    ['constructor/a', 'unknown kind "constructor". Kinds: pvc, pv, pod, va, node, vac.'],
  ])('SYS-12 rejects the argument %j with the message "%s"', (object, message) => {
    const read = () => readRetryRequest(object, { output: 'text' })
    expect(read).toThrow(UsageError)
    expect(read).toThrow(message)
  })
})
