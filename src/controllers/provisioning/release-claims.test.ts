import { expect, it } from 'vitest'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { intentOf } from '../../volumes/provisioning-intent.ts'
import { releaseClaims } from './release-claims.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PROVISIONER = 'disks.example.com'

it('releaseClaims removes the finalizer of its provisioner and keeps other finalizers', async () => {
  const server = await createServerFixture()
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  const finalizers = [intentOf(PROVISIONER), 'example.com/kept']
  await server.post(CLAIMS, { metadata: { name: 'own', finalizers }, spec })
  await server.post(CLAIMS, { metadata: { name: 'other', finalizers: ['example.com/kept'] }, spec })
  const signal = new AbortController().signal
  const intentLease = { namespace: 'kube-system', name: 'stowage-intents-disks' }
  const result = await releaseClaims(server.clientOf('provisioner'), {
    provisionerName: PROVISIONER,
    intentLease,
    signal,
  })
  expect(result).toEqual({ released: ['default/own'], unreleased: [] })
  expect((await server.get(`${CLAIMS}/own`)).json.metadata.finalizers).not.toContain(intentOf(PROVISIONER))
  expect((await server.get(`${CLAIMS}/own`)).json.metadata.finalizers).toContain('example.com/kept')
  await server.store.close()
})
