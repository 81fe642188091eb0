import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture()
  for (const [name, volumeBindingMode] of [
    ['slow', 'WaitForFirstConsumer'],
    ['fast', 'Immediate'],
  ]) {
    const body = { metadata: { name }, provisioner: 'disks.example.com', volumeBindingMode }
    await server.post('/apis/storage.k8s.io/v1/storageclasses', body)
  }
})
afterEach(() => server.store.close())

async function createClaimAndReadConditions(spec: object): Promise<unknown> {
  const fields = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  const { json } = await server.post(CLAIMS, { metadata: { generateName: 'c-' }, spec: { ...fields, ...spec } })
  return json.status.conditions
}

describe('FirstConsumer', () => {
  it('sets ReadyForFirstConsumer in the write that creates a claim of a WaitForFirstConsumer class', async () => {
    const revision = server.store.revision
    expect(await createClaimAndReadConditions({ storageClassName: 'slow' })).toEqual([
      {
        type: 'ReadyForFirstConsumer',
        status: 'True',
        reason: 'WaitForFirstConsumer',
        message: 'The volume is provisioned or bound when a pod uses the claim.',
        lastTransitionTime: expect.any(String),
      },
    ])
    expect(server.store.revision).toBe(revision + 1)
  })

  it('sets no condition on other claims', async () => {
    expect(await createClaimAndReadConditions({ storageClassName: 'fast' })).toBeUndefined()
    expect(await createClaimAndReadConditions({ storageClassName: 'missing' })).toBeUndefined()
    expect(await createClaimAndReadConditions({ storageClassName: 'slow', volumeName: 'pv' })).toBeUndefined()
  })
})
