import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { serviceAccountAdmission } from './service-account-admission.ts'

const SHOP = '/api/v1/namespaces/shop'
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount'

let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture({
    hasAccountTokens: true,
    admissionPlugins: [serviceAccountAdmission({ random: Math.random, rootCa: 'PEM' })],
  })
  await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
})
afterEach(() => server.store.close())

const container = (name: string, fields: object = {}) => ({ name, image: 'i', ...fields })
const createPod = (spec: object = {}, annotations: object = {}) =>
  server.post(`${SHOP}/pods`, {
    metadata: { name: 'web', annotations },
    spec: { containers: [container('main')], ...spec },
  })

describe('the admission plugin ServiceAccount', () => {
  it('SYS-23 sets the account default, and mounts its token, the CA and the namespace into every container', async () => {
    const { json } = await createPod({ initContainers: [container('init')] })
    expect(json.spec).toMatchObject({ serviceAccountName: 'default', serviceAccount: 'default' })
    const [volume] = json.spec.volumes
    expect(volume).toEqual({
      name: expect.stringMatching(/^kube-api-access-\w{5}$/),
      projected: {
        defaultMode: 0o644,
        sources: [
          { serviceAccountToken: { path: 'token', expirationSeconds: 3_607 } },
          { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
          {
            downwardAPI: {
              items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
            },
          },
        ],
      },
    })
    for (const { volumeMounts } of [...json.spec.containers, ...json.spec.initContainers])
      expect(volumeMounts).toEqual([{ name: volume.name, mountPath: MOUNT_PATH, readOnly: true }])
  })

  it('creates the account default and the CA with the first pod if they do not exist yet', async () => {
    expect((await createPod()).status).toBe(201)
    const { json } = await server.get(`${SHOP}/serviceaccounts/default`)
    const token = await server.post(`${SHOP}/serviceaccounts/default/token`, {
      spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'web' } },
    })
    expect([json.metadata.uid.length, token.status]).toEqual([36, 201])
    expect((await server.get(`${SHOP}/configmaps/kube-root-ca.crt`)).json.data).toEqual({ 'ca.crt': 'PEM' })
  })

  it('SYS-23 rejects a pod that names an account that does not exist', async () => {
    const { status, json } = await createPod({ serviceAccountName: 'robot' })
    expect(status).toBe(403)
    expect(json.message).toBe(
      'pods "web" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found',
    )
  })

  it.each([
    ['the pod', { automountServiceAccountToken: false }, {}],
    ['the account', {}, { automountServiceAccountToken: false }],
  ])('SYS-23 mounts no token if %s disables it', async (_by, spec, account) => {
    await server.post(`${SHOP}/serviceaccounts`, { metadata: { name: 'robot' }, ...account })
    const { json } = await createPod({ serviceAccountName: 'robot', ...spec })
    expect([json.spec.volumes, json.spec.containers[0].volumeMounts]).toEqual([undefined, undefined])
  })

  it('adds the pull secrets of the account to a pod without any', async () => {
    await server.post(`${SHOP}/serviceaccounts`, { metadata: { name: 'robot' }, imagePullSecrets: [{ name: 'a' }] })
    const pod = (await createPod({ serviceAccountName: 'robot' })).json
    expect(pod.spec.imagePullSecrets).toEqual([{ name: 'a' }])
  })

  it("keeps a mount of the container at the token's path", async () => {
    const volumeMounts = [{ name: 'own', mountPath: MOUNT_PATH }]
    const { json } = await createPod({
      containers: [container('main', { volumeMounts })],
      volumes: [{ name: 'own', emptyDir: {} }],
    })
    expect(json.spec.volumes.map(({ name }: Json) => name)).toEqual(['own'])
  })

  it('does not change a mirror pod', async () => {
    const { json } = await createPod({ nodeName: 'n1' }, { 'kubernetes.io/config.mirror': 'hash' })
    expect([json.spec.serviceAccountName, json.spec.volumes]).toEqual([undefined, undefined])
  })
})
