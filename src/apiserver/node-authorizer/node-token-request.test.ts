import { describe, expect, it, onTestFinished } from 'vitest'
import { createServerFixture } from '../server.fixture.ts'

const SHOP = '/api/v1/namespaces/shop'
const STORAGE = '/apis/storage.k8s.io/v1'
const NODE = { 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' }
const DRIVER = 'tokens.example.com'

/** Creates the pod `web` on the node n1, and returns a function that requests a token of its account as the node. */
async function createPod(volumes: readonly object[] = [], nodeName = 'n1') {
  const server = await createServerFixture({ usesRbac: true, hasAccountTokens: true })
  onTestFinished(() => server.store.close())
  const post = async (path: string, body: object) => {
    const { status, json } = await server.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
    return json
  }
  await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
  await post(`${SHOP}/serviceaccounts`, { metadata: { name: 'robot' } })
  await post(`${STORAGE}/csidrivers`, {
    metadata: { name: DRIVER },
    spec: { tokenRequests: [{ audience: 'vault' }, { audience: '' }] },
  })
  const spec = { storageClassName: '', accessModes: ['ReadWriteOnce'] }
  for (const claim of ['data', 'web-scratch']) {
    const resources = { requests: { storage: '1Gi' } }
    await post(`${SHOP}/persistentvolumeclaims`, {
      metadata: { name: claim },
      spec: { ...spec, resources, volumeName: `v-${claim}` },
    })
    await post('/api/v1/persistentvolumes', {
      metadata: { name: `v-${claim}` },
      spec: { ...spec, capacity: { storage: '1Gi' }, csi: { driver: DRIVER, volumeHandle: claim } },
    })
  }
  const container = { name: 'main', image: 'none' }
  const pod = await post(`${SHOP}/pods`, {
    metadata: { name: 'web' },
    spec: { serviceAccountName: 'robot', nodeName, containers: [container], volumes },
  })
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: pod.metadata.uid }
  await server.waitUntil(
    async () => (await server.get(`${SHOP}/serviceaccounts/robot`, NODE)).status === (nodeName === 'n1' ? 200 : 403),
    'the node authorizer to have the pod',
  )
  return {
    post,
    request: async (tokenSpec: object = {}, headers: Record<string, string> = NODE) => {
      const { status, json } = await server.post(
        `${SHOP}/serviceaccounts/robot/token`,
        { spec: { boundObjectRef, ...tokenSpec } },
        headers,
      )
      return { status, message: json.message as string | undefined, token: json.status?.token as string | undefined }
    },
    boundObjectRef,
  }
}

const tokenVolume = (audience?: string) => ({
  name: 'token',
  projected: { sources: [{ serviceAccountToken: { path: 'token', ...(audience ? { audience } : {}) } }] },
})

describe('the token request of a node', () => {
  it('SYS-23 must be bound to a pod on the node, with its uid', async () => {
    const { request, boundObjectRef } = await createPod([tokenVolume()])
    expect((await request()).status).toBe(201)
    const unboundMessage = 'node requested token not bound to a pod'
    expect((await request({ boundObjectRef: undefined })).message).toContain(unboundMessage)
    const withoutUid = { ...boundObjectRef, uid: undefined }
    expect(await request({ boundObjectRef: withoutUid })).toMatchObject({
      status: 403,
      message: expect.stringContaining('node requested token with a pod binding without a uid'),
    })
  })

  it('SYS-23 is denied for a pod on another node, whose account the node cannot reach', async () => {
    const { request } = await createPod([tokenVolume()], 'n2')
    expect((await request()).status).toBe(403)
  })

  it('SYS-23 is limited only if the user is a node', async () => {
    const { request } = await createPod()
    expect((await request({ boundObjectRef: undefined, audiences: ['a', 'b'] }, {})).status).toBe(201)
  })

  it.each([
    ['a projected volume', tokenVolume('vault')],
    ['the driver of an inline volume', { name: 'v', csi: { driver: DRIVER } }],
    ['the driver of a claim', { name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
    [
      'the driver of an ephemeral volume',
      {
        name: 'scratch',
        ephemeral: {
          volumeClaimTemplate: {
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        },
      },
    ],
  ])('SYS-23 may name an audience of %s, and no other', async (_source, volume) => {
    const { request } = await createPod([volume])
    expect(await request({ audiences: ['vault'] })).toMatchObject({ status: 201 })
    expect(await request({ audiences: ['bank'] })).toMatchObject({
      status: 403,
      message: expect.stringContaining(
        'audience "bank" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience',
      ),
    })
    expect((await request({ audiences: ['vault', 'bank'] })).message).toContain('may only request 0 or 1 audiences')
  })

  it('SYS-23 for the API server needs a volume or driver that requests such a token', async () => {
    expect((await (await createPod()).request()).status).toBe(403)
    expect((await (await createPod([tokenVolume('vault')])).request()).status).toBe(403)
    expect((await (await createPod([{ name: 'v', csi: { driver: DRIVER } }])).request()).status).toBe(201)
  })

  it('SYS-23 may name any audience that a role grants to the node', async () => {
    const { request, post } = await createPod()
    expect((await request({ audiences: ['bank'] })).status).toBe(403)
    const RBAC = '/apis/rbac.authorization.k8s.io/v1'
    const verbs = ['request-serviceaccounts-token-audience']
    await post(`${RBAC}/clusterroles`, {
      metadata: { name: 'bank' },
      rules: [{ verbs, apiGroups: [''], resources: ['bank'], resourceNames: ['robot'] }],
    })
    await post(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'bank' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bank' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
    })
    expect((await request({ audiences: ['bank'] })).status).toBe(201)
    expect((await request({ audiences: ['vault'] })).status).toBe(403)
  })
})
