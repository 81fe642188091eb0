// Tests how the provisioner deletes volumes, and the credentials that it passes to DeleteVolume.
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import { CsiError } from '../../../csi/index.ts'
import { createProvisionerFixture } from './provisioner.fixture.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'

describe('deletion of volumes', () => {
  const aVolume = (metadata: object = {}, spec: object = {}) =>
    ({
      metadata: { name: 'pvc-uid-1', ...metadata },
      spec: {
        capacity: { storage: '1Gi' },
        csi: { driver: 'disk.example.com', volumeHandle: 'v-1' },
        storageClassName: 'fast',
        claimRef: { namespace: 'default', name: 'orders' },
        ...spec,
      },
    }) as never
  const SECRET_PARAMETERS = {
    'csi.storage.k8s.io/provisioner-secret-name': 'creds',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
  }
  const secretAnnotations = (name: string, namespace: string) => ({
    annotations: {
      'volume.kubernetes.io/provisioner-deletion-secret-name': name,
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': namespace,
    },
  })
  async function createFixtureWithSecrets(options: Parameters<typeof createProvisionerFixture>[0] = {}) {
    const fixture = await createProvisionerFixture(options)
    const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
    await fixture.apiServer.post(CLASSES, {
      metadata: { name: 'fast' },
      provisioner: 'disk.example.com',
      parameters: SECRET_PARAMETERS,
    })
    await fixture.apiServer.post(SECRETS, { metadata: { name: 'creds' }, stringData: { token: 'of-the-class' } })
    await fixture.apiServer.post(SECRETS, { metadata: { name: 'noted' }, stringData: { token: 'of-the-volume' } })
    return fixture
  }

  it("PROV-14 calls DeleteVolume and owns the driver's volumes", async () => {
    const { provisioner, driver, signal } = await createProvisionerFixture()
    expect(await provisioner.delete(aVolume(), signal)).toEqual({ is: 'deleted' })
    expect(driver.deleteRequests).toMatchObject([{ volumeId: 'v-1', secrets: {} }])
    expect(provisioner.owns(aVolume())).toBe(true)
    expect(provisioner.owns(aVolume({}, { csi: { driver: 'other', volumeHandle: 'x' } }))).toBe(false)
    expect(provisioner.owns(aVolume({}, { csi: undefined, hostPath: { path: '/' } }))).toBe(false)
  })

  it('PROV-14 returns a failure for volumes of another driver and for volumes without a CSI source', async () => {
    const { provisioner, driver, signal } = await createProvisionerFixture()
    const foreignResult = await provisioner.delete(aVolume({}, { csi: { driver: 'other', volumeHandle: 'x' } }), signal)
    const message = expect.stringContaining('belongs to the CSI driver other')
    expect(foreignResult).toEqual({ is: 'failed', message, isForeign: true })
    const nonCsiResult = await provisioner.delete(aVolume({}, { csi: undefined }), signal)
    expect(nonCsiResult).toMatchObject({ is: 'failed', isForeign: true })
    expect(driver.deleteRequests).toEqual([])
  })

  it("PROV-16 prefers the process's credentials to those of the volume and the class", async () => {
    const fixtureWithCredentials = await createFixtureWithSecrets({
      options: { credentials: () => ({ token: 'own' }) },
    })
    await fixtureWithCredentials.provisioner.delete(
      aVolume(secretAnnotations('noted', 'default')),
      fixtureWithCredentials.signal,
    )
    expect(fixtureWithCredentials.driver.deleteRequests[0]!.secrets).toEqual({ token: 'own' })

    const { provisioner, driver, signal } = await createFixtureWithSecrets()
    await provisioner.delete(aVolume(secretAnnotations('noted', 'default')), signal)
    await provisioner.delete(aVolume(), signal)
    await provisioner.delete(aVolume(secretAnnotations('', '')), signal) // annotated as needing no secret
    expect(driver.deleteRequests.map(({ secrets }) => secrets)).toEqual([
      { token: 'of-the-volume' },
      { token: 'of-the-class' },
      {},
    ])
  })

  it('PROV-16 sends no secrets if the credentials are missing, and explains the failure if the driver requires them', async () => {
    const { provisioner, driver, signal } = await createFixtureWithSecrets()
    expect(await provisioner.delete(aVolume(secretAnnotations('gone', 'default')), signal)).toEqual({ is: 'deleted' })
    expect(driver.deleteRequests[0]!.secrets).toEqual({})
    driver.setReplies({
      deleteVolume: async () => {
        throw new CsiError('UNAUTHENTICATED', 'no token')
      },
    })
    const result = await provisioner.delete(aVolume({}, { storageClassName: 'removed' }), signal)
    expect(result).toMatchObject({
      is: 'failed',
      message: expect.stringMatching(
        /no token\. No credentials were sent, because class "removed" does not exist.*--provisioner-secret-dir/,
      ),
    })
  })

  it('PROV-14 returns a failure if the API server cannot return the secret', async () => {
    const wrapClient = (client: Client): Client => ({
      ...client,
      get: async (kind, ...args) => {
        if (kind.kind !== 'Secret') return client.get(kind, ...args)
        throw new ApiError(503, 'ServiceUnavailable', 'overloaded')
      },
    })
    const { provisioner, driver, signal } = await createFixtureWithSecrets({ wrapClient })
    expect(await provisioner.delete(aVolume(), signal)).toMatchObject({
      is: 'failed',
      message: expect.stringContaining('overloaded'),
    })
    expect(driver.deleteRequests).toEqual([])
  })
})
