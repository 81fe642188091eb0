import { describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const NAMESPACE = '/api/v1/namespaces/default'
const PODS = `${NAMESPACE}/pods`
const CLAIMS = `${NAMESPACE}/persistentvolumeclaims`
const SECRETS = `${NAMESPACE}/secrets`
const VOLUMES = '/api/v1/persistentvolumes'
const STORAGE = '/apis/storage.k8s.io/v1'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'

const nodeHeaders = (name: string) => ({
  'impersonate-user': `system:node:${name}`,
  'impersonate-group': 'system:nodes',
})

interface NodeServer {
  readonly api: ServerFixture
  /** Sends a request as the node n1. */
  send(
    method: string,
    url: string,
    body?: object,
    type?: string,
  ): Promise<{ status: number; message: string; json: Json }>
  create(url: string, object: object): Promise<Json>
}

async function openServer(): Promise<NodeServer> {
  const api = await createServerFixture({ usesRbac: true })
  return {
    api,
    async send(method, url, body, type = 'application/json') {
      const text = body && JSON.stringify(body)
      const { status, json } = await api.call(method, url, text, { ...nodeHeaders('n1'), 'content-type': type })
      return { status, message: json.message, json }
    },
    async create(url, object) {
      const response = await api.post(url, object)
      expect(response.status, response.text).toBe(201)
      return response.json
    },
  }
}

const MERGE = 'application/merge-patch+json'
const container = { name: 'c', image: 'busybox' }
const aPod = (name: string, nodeName: string | undefined, spec: object = {}) => ({
  metadata: { name, namespace: 'default' },
  spec: { ...(nodeName ? { nodeName } : {}), containers: [container], ...spec },
})
const aClaim = (name: string, volumeName?: string) => ({
  metadata: { name, namespace: 'default' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    storageClassName: '',
    ...(volumeName ? { volumeName } : {}),
  },
})
const aVolume = (name: string, claim: string, csi: object = {}) => ({
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'd.example', volumeHandle: name, ...csi },
    claimRef: { namespace: 'default', name: claim },
  },
})
const claimVolume = (claimName: string) => ({ name: claimName, persistentVolumeClaim: { claimName } })

describe('the node authorizer', () => {
  it('SYS-9 lets a node read a secret only while a pod on it names the secret', async () => {
    const { send, create, api } = await openServer()
    for (const name of ['used', 'other']) await create(SECRETS, { metadata: { name } })
    await create(PODS, aPod('theirs', 'n2', { volumes: [{ name: 'v', secret: { secretName: 'other' } }] }))
    expect((await send('GET', `${SECRETS}/used`)).message).toBe(
      'secrets "used" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the ' +
        `namespace "default": no relationship found between node 'n1' and this object`,
    )
    await create(PODS, aPod('ours', 'n1', { volumes: [{ name: 'v', secret: { secretName: 'used' } }] }))
    expect((await send('GET', `${SECRETS}/used`)).status).toBe(200)
    expect((await send('GET', `${SECRETS}?fieldSelector=metadata.name%3Dused`)).json.items).toHaveLength(1)
    expect((await send('GET', `${SECRETS}/other`)).status).toBe(403)
    expect((await send('GET', SECRETS)).message).toContain('No Object name found')
    expect((await send('GET', '/api/v1/secrets')).message).toContain('can only read namespaced object of this type')
    expect((await send('DELETE', `${SECRETS}/used`)).message).toContain('can only read resources of this type')
    await api.delete(`${PODS}/ours?gracePeriodSeconds=0`)
    expect((await send('GET', `${SECRETS}/used`)).status).toBe(403)
  })

  it.each<[string, string, object]>([
    ['secrets', 'imagePullSecrets', { imagePullSecrets: [{ name: 'a' }] }],
    ['secrets', 'envFrom', { containers: [{ ...container, envFrom: [{ secretRef: { name: 'a' } }] }] }],
    ['configmaps', 'envFrom', { containers: [{ ...container, envFrom: [{ configMapRef: { name: 'a' } }] }] }],
    [
      'secrets',
      'env of an init container',
      {
        initContainers: [
          { ...container, name: 'i', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'a', key: 'k' } } }] },
        ],
      },
    ],
    [
      'configmaps',
      'env',
      { containers: [{ ...container, env: [{ name: 'E', valueFrom: { configMapKeyRef: { name: 'a', key: 'k' } } }] }] },
    ],
    ['configmaps', 'a volume', { volumes: [{ name: 'v', configMap: { name: 'a' } }] }],
    [
      'secrets',
      'a projected volume',
      { volumes: [{ name: 'v', projected: { sources: [{ secret: { name: 'a' } }] } }] },
    ],
    [
      'configmaps',
      'a projected volume',
      { volumes: [{ name: 'v', projected: { sources: [{ configMap: { name: 'a' } }] } }] },
    ],
    [
      'secrets',
      'an inline CSI volume',
      { volumes: [{ name: 'v', csi: { driver: 'd.example', nodePublishSecretRef: { name: 'a' } } }] },
    ],
  ])('SYS-9 lets a node read the %s that a pod names in %s', async (resource, _field, spec) => {
    const { send, create } = await openServer()
    await create(`${NAMESPACE}/${resource}`, { metadata: { name: 'a' } })
    await create(PODS, aPod('pending', undefined, spec))
    expect((await send('GET', `${NAMESPACE}/${resource}/a`)).status).toBe(403)
    await create(PODS, aPod('bound', 'n1', spec))
    expect((await send('GET', `${NAMESPACE}/${resource}/a`)).status).toBe(200)
  })

  it('SYS-9 lets a node get the claims of its pods, their volumes, and the secrets of node calls', async () => {
    const { send, create } = await openServer()
    const csi = {
      nodeStageSecretRef: { namespace: 'default', name: 'stage' },
      nodeExpandSecretRef: { namespace: 'default', name: 'expand' },
      controllerExpandSecretRef: { namespace: 'default', name: 'controller' },
    }
    for (const name of ['stage', 'expand', 'controller']) await create(SECRETS, { metadata: { name } })
    await create(CLAIMS, aClaim('a', 'pv-a'))
    await create(CLAIMS, aClaim('p-v', 'pv-e'))
    await create(VOLUMES, aVolume('pv-a', 'a', csi))
    await create(VOLUMES, aVolume('pv-e', 'p-v'))
    const paths = [
      `${CLAIMS}/a`,
      `${VOLUMES}/pv-a`,
      `${SECRETS}/stage`,
      `${SECRETS}/expand`,
      `${CLAIMS}/p-v`,
      `${VOLUMES}/pv-e`,
    ]
    for (const path of paths) expect((await send('GET', path)).status, path).toBe(403)
    const ephemeral = { volumeClaimTemplate: { spec: aClaim('x').spec } }
    await create(PODS, aPod('p', 'n1', { volumes: [claimVolume('a'), { name: 'v', ephemeral }] }))
    for (const path of paths) expect((await send('GET', path)).status, path).toBe(200)
    expect((await send('GET', `${SECRETS}/controller`)).status).toBe(403)
    const individualMessage = 'can only get individual resources of this type'
    expect((await send('GET', `${CLAIMS}?fieldSelector=metadata.name%3Da`)).message).toContain(individualMessage)
    expect((await send('GET', VOLUMES)).message).toContain(individualMessage)
    expect((await send('DELETE', `${VOLUMES}/pv-a`)).message).toContain(individualMessage)
    expect((await send('GET', `${CLAIMS}/a/status`)).message).toContain('can only get/update/patch this type')
  })

  it('SYS-9 lets a node get only its own attachments', async () => {
    const { send, create } = await openServer()
    for (const nodeName of ['n1', 'n2']) {
      const spec = { attacher: 'd.example', nodeName, source: { persistentVolumeName: 'pv' } }
      await create(`${STORAGE}/volumeattachments`, { metadata: { name: `to-${nodeName}` }, spec })
    }
    expect((await send('GET', `${STORAGE}/volumeattachments/to-n1`)).status).toBe(200)
    expect((await send('GET', `${STORAGE}/volumeattachments/to-n2`)).status).toBe(403)
    expect((await send('PATCH', `${STORAGE}/volumeattachments/to-n1/status`, {}, MERGE)).status).toBe(403)
  })

  it('SYS-9 lets a node list and watch only its own pods', async () => {
    const { send, create, api } = await openServer()
    await create(PODS, aPod('ours', 'n1'))
    await create(PODS, aPod('theirs', 'n2'))
    const ownPods = await send('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1')
    expect(ownPods.json.items.map(({ metadata }: Json) => metadata.name)).toEqual(['ours'])
    const watch = await api.watch('/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1', nodeHeaders('n1'))
    watch.close()
    expect((await send('GET', `${PODS}/ours`)).status).toBe(200)
    expect((await send('GET', `${PODS}?fieldSelector=metadata.name%3Dours`)).status).toBe(200)
    expect((await send('GET', `${PODS}/theirs`)).status).toBe(403)
    const selectors = ['spec.nodeName%3Dn2', 'spec.nodeName!%3Dn1', 'spec.nodeName%3D', 'status.phase%3DRunning']
    for (const selector of selectors) {
      const { message } = await send('GET', `/api/v1/pods?fieldSelector=${selector}`)
      expect(message, selector).toContain('can only list/watch pods with spec.nodeName field selector')
    }
    expect((await send('DELETE', PODS)).status).toBe(403)
  })

  it('SYS-9 lets a node read its own Node, Lease and CSINode, even before they exist', async () => {
    const { send } = await openServer()
    expect((await send('GET', '/api/v1/nodes/n1')).status).toBe(404)
    expect((await send('GET', '/api/v1/nodes?fieldSelector=metadata.name%3Dn1')).status).toBe(200)
    expect((await send('GET', '/api/v1/nodes/n2')).message).toContain(
      `node 'n1' cannot read 'n2', only its own Node object`,
    )
    expect((await send('GET', '/api/v1/nodes')).message).toContain(
      `node 'n1' cannot read all nodes, only its own Node object`,
    )
    expect((await send('DELETE', '/api/v1/nodes/n1')).status).toBe(403)
    expect((await send('GET', `${LEASES}/n1`)).status).toBe(404)
    expect((await send('GET', `${LEASES}/n2`)).status).toBe(403)
    expect((await send('GET', LEASES)).status).toBe(403)
    expect((await send('GET', `${LEASES.replace('kube-node-lease', 'kube-system')}/n1`)).message).toContain(
      'can only access leases in the "kube-node-lease" system namespace',
    )
    expect((await send('GET', `${STORAGE}/csinodes/n1`)).status).toBe(404)
    expect((await send('GET', `${STORAGE}/csinodes/n2`)).status).toBe(403)
    expect((await send('GET', `${STORAGE}/csinodes`)).status).toBe(403)
  })

  it('SYS-9 grants the static rules of system:node for other resources, and denies resources without a rule', async () => {
    const { send } = await openServer()
    expect((await send('GET', `${STORAGE}/csidrivers`)).status).toBe(200)
    expect((await send('GET', `${STORAGE}/storageclasses`)).status).toBe(403)
    expect((await send('GET', '/api/v1/namespaces')).status).toBe(403)
    expect((await send('POST', '/apis/stowage.dev/v1/commits', {})).status).toBe(403)
  })

  it('SYS-9 treats only users system:node:NAME of the group system:nodes as nodes', async () => {
    const { api } = await openServer()
    const url = '/api/v1/nodes/n1'
    expect((await api.get(url, { 'impersonate-user': 'system:node:n1' })).status).toBe(403)
    expect((await api.get(url, { ...nodeHeaders('n1'), 'impersonate-user': 'n1' })).status).toBe(403)
    expect((await api.get(url, nodeHeaders(''))).json.message).toContain('unknown node for user "system:node:"')
  })

  it('SYS-9 gives the reason in access reviews of a node, and marks rule reviews as incomplete', async () => {
    const { send, create } = await openServer()
    await create(PODS, aPod('ours', 'n1', { volumes: [claimVolume('a')] }))
    const review = async (resourceAttributes: object) =>
      (await send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: { resourceAttributes } }))
        .json.status
    const claim = { verb: 'get', resource: 'persistentvolumeclaims', namespace: 'default', name: 'a' }
    expect(await review(claim)).toMatchObject({ allowed: true })
    expect(await review({ ...claim, name: 'b' })).toEqual({
      allowed: false,
      reason: `no relationship found between node 'n1' and this object`,
    })
    const pods = { verb: 'watch', resource: 'pods' }
    const requirements = [{ key: 'spec.nodeName', operator: 'In', values: ['n1'] }]
    expect(await review(pods)).toMatchObject({ allowed: false })
    expect(await review({ ...pods, fieldSelector: { requirements } })).toMatchObject({ allowed: true })
    expect(await review({ ...pods, fieldSelector: { rawSelector: 'spec.nodeName=n1' } })).toMatchObject({
      allowed: true,
    })
    const body = { spec: { namespace: 'default' } }
    const rulesReview = await send('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', body)
    expect(rulesReview.json.status).toMatchObject({
      incomplete: true,
      evaluationError: 'node authorizer does not support user rule resolution',
    })
  })
})

describe('NodeRestriction', () => {
  it('SYS-9 lets a node write its own Node, Lease and CSINode, but not those of another', async () => {
    const { send, create } = await openServer()
    const csiNode = (name: string) => ({ metadata: { name }, spec: { drivers: [] } })
    const objects: [string, (name: string) => object][] = [
      ['/api/v1/nodes', (name) => ({ metadata: { name } })],
      [LEASES, (name) => ({ metadata: { name, namespace: 'kube-node-lease' } })],
      [`${STORAGE}/csinodes`, csiNode],
    ]
    const patch = { metadata: { annotations: { a: 'b' } } }
    for (const [url, objectOf] of objects) {
      expect((await send('POST', url, objectOf('n1'))).status, url).toBe(201)
      expect((await send('POST', url, objectOf('n2'))).status, url).toBe(403)
      await create(url, objectOf('n2'))
      expect((await send('PATCH', `${url}/n1`, patch, MERGE)).status, url).toBe(200)
      expect((await send('PATCH', `${url}/n2`, patch, MERGE)).status, url).toBe(403)
    }
    expect((await send('PATCH', '/api/v1/nodes/n2/status', { status: {} }, MERGE)).message).toBe(
      'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
    )
    expect((await send('DELETE', `${STORAGE}/csinodes/n1`)).status).toBe(200)
    expect((await send('DELETE', `${STORAGE}/csinodes/n2`)).status).toBe(403)
    expect((await send('DELETE', `${LEASES}/n2`)).status).toBe(403)
  })

  it('SYS-9 limits the labels that a node may change on its Node, and rejects changes to taints and owners', async () => {
    const { send, api } = await openServer()
    const labels = {
      'node-restriction.kubernetes.io/pool': 'x',
      'topology.kubernetes.io/zone': 'z',
      'example.com/a': 'b',
    }
    expect((await send('POST', '/api/v1/nodes', { metadata: { name: 'n1', labels } })).message).toContain(
      'node "n1" is not allowed to set the following labels: node-restriction.kubernetes.io/pool',
    )
    const taints = [{ key: 'dedicated', value: 'x', effect: 'NoSchedule' }]
    expect((await send('POST', '/api/v1/nodes', { metadata: { name: 'n1' }, spec: { taints } })).status).toBe(201)
    const patch = (body: object) => send('PATCH', '/api/v1/nodes/n1', body, MERGE)
    const label = (key: string) => patch({ metadata: { labels: { [key]: '1' } } })
    const allowedKeys = [
      'topology.kubernetes.io/zone',
      'kubernetes.io/hostname',
      'x.node.kubernetes.io/y',
      'example.com/a',
      'a',
    ]
    for (const key of allowedKeys) expect((await label(key)).status, key).toBe(200)
    const forbiddenKeys = [
      'node-restriction.kubernetes.io/x',
      'a.node-restriction.kubernetes.io/x',
      'node-role.kubernetes.io/control-plane',
      'kubernetes.io/x',
      'my.k8s.io/x',
    ]
    for (const key of forbiddenKeys) {
      expect((await label(key)).message, key).toContain(`is not allowed to modify labels: ${key}`)
      await api.patch('/api/v1/nodes/n1', { metadata: { labels: { [key]: '1' } } }, 'merge')
      const removal = await patch({ metadata: { labels: { [key]: null } } })
      expect(removal.message, key).toContain(`is not allowed to modify labels: ${key}`)
    }
    expect((await patch({ spec: { taints: [] } })).message).toContain('node "n1" is not allowed to modify taints')
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }]
    expect((await patch({ metadata: { ownerReferences } })).message).toContain(
      'node "n1" is not allowed to modify ownerReferences',
    )
  })

  it('SYS-9 lets a node write the status of its own pods, delete and evict them, but not pods of another node', async () => {
    const { send, create } = await openServer()
    for (const name of ['a', 'b', 'c']) await create(PODS, aPod(name, 'n1'))
    await create(PODS, aPod('theirs', 'n2'))
    await create(PODS, aPod('pending', undefined))
    const status = { status: { phase: 'Running' } }
    expect((await send('PATCH', `${PODS}/a/status`, status, MERGE)).status).toBe(200)
    expect((await send('PATCH', `${PODS}/a`, { metadata: { labels: { a: 'b' } } }, MERGE)).status).toBe(403)
    const eviction = (name: string) => ({
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace: 'default' },
    })
    for (const name of ['theirs', 'pending']) {
      expect((await send('PATCH', `${PODS}/${name}/status`, status, MERGE)).message).toContain(
        'node "n1" can only update pod status for pods with spec.nodeName set to itself',
      )
      expect((await send('DELETE', `${PODS}/${name}`)).message).toContain('can only delete pods with spec.nodeName')
      expect((await send('POST', `${PODS}/${name}/eviction`, eviction(name))).message).toContain(
        'node n1 can only evict pods with spec.nodeName set to itself',
      )
    }
    expect((await send('DELETE', `${PODS}/b?gracePeriodSeconds=0`)).status).toBe(200)
    expect((await send('POST', `${PODS}/c/eviction`, eviction('c'))).status).toBe(201)
    const binding = { metadata: { name: 'pending' }, target: { kind: 'Node', name: 'n1' } }
    expect((await send('POST', `${PODS}/pending/binding`, binding)).status).toBe(403)
  })

  it('SYS-9 lets a node create only its own mirror pods, which refer to no other objects', async () => {
    const { send, create } = await openServer()
    const { metadata } = await create('/api/v1/nodes', { metadata: { name: 'n1' } })
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: metadata.uid, controller: true }
    const mirror = (spec: object = {}, meta: object = {}) => ({
      ...aPod('m', 'n1', spec),
      metadata: {
        name: 'm',
        annotations: { 'kubernetes.io/config.mirror': 'x' },
        ownerReferences: [owner],
        ...meta,
      },
    })
    const createPodAndReadMessage = async (pod: object) => (await send('POST', PODS, pod)).message
    expect(await createPodAndReadMessage(mirror({}, { annotations: {} }))).toContain(
      'node "n1" can only create mirror pods',
    )
    expect(await createPodAndReadMessage(mirror({ nodeName: 'n2' }))).toContain(
      'can only create pods with spec.nodeName set to itself',
    )
    expect(await createPodAndReadMessage(mirror({}, { ownerReferences: [] }))).toContain(
      'an owner reference set to itself',
    )
    expect(await createPodAndReadMessage(mirror({}, { ownerReferences: [{ ...owner, uid: 'x' }] }))).toContain(
      'UID mismatch',
    )
    expect(await createPodAndReadMessage(mirror({ serviceAccountName: 'default' }))).toContain(
      'reference serviceaccounts',
    )
    expect(await createPodAndReadMessage(mirror({ volumes: [{ name: 'v', secret: { secretName: 's' } }] }))).toContain(
      'reference secrets',
    )
    expect(await createPodAndReadMessage(mirror({ volumes: [claimVolume('a')] }))).toContain(
      'reference persistentvolumeclaims',
    )
    expect((await send('POST', PODS, mirror())).status).toBe(201)
  })

  it('SYS-9 lets a node change only the sizes and conditions of the claims that its pods use', async () => {
    const { send, create } = await openServer()
    await create(CLAIMS, aClaim('a', 'pv-a'))
    await create(CLAIMS, aClaim('b', 'pv-b'))
    await create(PODS, aPod('p', 'n1', { volumes: [claimVolume('a')] }))
    const patch = (name: string, body: object) => send('PATCH', `${CLAIMS}/${name}/status`, body, MERGE)
    expect((await patch('a', { status: { phase: 'Lost' } })).message).toBe(
      'persistentvolumeclaims "a" is forbidden: node "n1" is not allowed to update fields other than status.quantity and status.conditions',
    )
    expect((await patch('a', { status: { capacity: { storage: '1Gi' } } })).status).toBe(200)
    expect((await patch('a', { status: { conditions: [{ type: 'Resizing', status: 'True' }] } })).status).toBe(200)
    expect((await patch('b', { status: { capacity: { storage: '1Gi' } } })).message).toContain('no relationship found')
    expect((await send('PATCH', `${CLAIMS}/a`, { metadata: { labels: { a: 'b' } } }, MERGE)).status).toBe(403)
    const labelledClaim = await patch('a', {
      metadata: { labels: { a: 'b' } },
      status: { capacity: { storage: '1Gi' } },
    })
    expect(labelledClaim.json.metadata?.labels).toBeUndefined()
  })
})

describe('a fenced node', () => {
  for (const taint of ['node.kubernetes.io/out-of-service', 'stowage.dev/quarantine'])
    it(`PLUS-11 can write only the objects that its return requires, from the next request after the taint ${taint}`, async () => {
      const { send, create, api } = await openServer()
      const nodeUid = (await create('/api/v1/nodes', { metadata: { name: 'n1' } })).metadata.uid
      await create(LEASES, { metadata: { name: 'n1' } })
      await create(`${STORAGE}/csinodes`, { metadata: { name: 'n1' }, spec: { drivers: [] } })
      await create(PODS, aPod('running', 'n1', { volumes: [claimVolume('data')] }))
      await create(PODS, aPod('leaving', 'n1'))
      await create(CLAIMS, aClaim('data'))
      await api.delete(`${PODS}/leaving`)
      const status = { status: { phase: 'Running' } }
      const writePodStatus = (name: string) => send('PATCH', `${PODS}/${name}/status`, status, MERGE)
      const writes = {
        'status of a pod': () => writePodStatus('running'),
        'status of a claim': () => send('PATCH', `${CLAIMS}/data/status`, { status: { conditions: [] } }, MERGE),
        event: () =>
          send('POST', `${NAMESPACE}/events`, {
            metadata: { generateName: 'e-' },
            involvedObject: { kind: 'Pod', namespace: 'default', name: 'running' },
          }),
        token: () =>
          send('POST', `${NAMESPACE}/serviceaccounts/default/token`, {
            spec: { audiences: [], boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'running', uid: 'x' } },
          }),
        'event of events.k8s.io': () =>
          send('POST', '/apis/events.k8s.io/v1/namespaces/default/events', {
            metadata: { generateName: 'e-', namespace: 'default' },
            eventTime: '2026-01-01T00:00:00.000000Z',
            reason: 'Test',
            action: 'Test',
            type: 'Normal',
            reportingController: 'agent',
            reportingInstance: 'n1',
          }),
        'certificate signing request': () =>
          send('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
            metadata: { generateName: 'csr-' },
            spec: {
              signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
              request: 'eA==',
              usages: ['client auth'],
            },
          }),
        'mirror pod': () =>
          send('POST', PODS, {
            ...aPod('mirror', 'n1'),
            metadata: {
              name: 'mirror',
              namespace: 'default',
              annotations: { 'kubernetes.io/config.mirror': 'x' },
              ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: nodeUid, controller: true }],
            },
          }),
        'deletion of its lease': () => send('DELETE', `${LEASES}/n1`),
        'deletion of its CSINode': () => send('DELETE', `${STORAGE}/csinodes/n1`),
        eviction: () =>
          send('POST', `${PODS}/running/eviction`, { metadata: { namespace: 'default', name: 'running' } }),
      }
      expect((await writes['status of a pod']()).status).toBe(200)
      const taints = [{ key: taint, value: 'fence-1', effect: 'NoExecute' }]
      await api.patch('/api/v1/nodes/n1', { spec: { taints } })
      const { token, ...fencedWrites } = writes
      for (const [name, write] of Object.entries(fencedWrites)) {
        const { status: code, message } = await write()
        expect([name, code]).toEqual([name, 403])
        expect(message).toContain('node "n1" is fenced')
      }
      expect((await token()).status).toBe(403)
      // These writes are forbidden to every node, fenced or not.
      const attachment = `${STORAGE}/volumeattachments/a/status`
      expect((await send('PATCH', attachment, { status: { attached: true } }, MERGE)).status).toBe(403)
      expect((await send('DELETE', '/api/v1/nodes/n1')).status).toBe(403)
      expect((await send('PATCH', '/api/v1/nodes/n1', { spec: { taints: null } }, MERGE)).status).toBe(403)
      // To return, the node renews its lease, reports its drivers and removes deleted pods.
      const renewal = { spec: { holderIdentity: 'n1' } }
      expect((await send('PATCH', `${LEASES}/n1`, renewal, MERGE)).status).toBe(200)
      await api.delete(`${LEASES}/n1`)
      expect((await send('POST', LEASES, { metadata: { name: 'n1' }, ...renewal })).status).toBe(201)
      const released = { metadata: { annotations: { 'stowage.dev/released-fence': 'fence-1' } } }
      expect((await send('PATCH', '/api/v1/nodes/n1', released, MERGE)).status).toBe(200)
      expect((await send('PATCH', '/api/v1/nodes/n1/status', { status: { volumesInUse: [] } }, MERGE)).status).toBe(200)
      await api.delete(`${STORAGE}/csinodes/n1`)
      expect(
        (await send('POST', `${STORAGE}/csinodes`, { metadata: { name: 'n1' }, spec: { drivers: [] } })).status,
      ).toBe(201)
      expect((await writePodStatus('leaving')).status).toBe(200)
      const removal = { gracePeriodSeconds: 0 }
      expect((await send('DELETE', `${PODS}/leaving`, removal)).status).toBe(200)
      expect((await send('DELETE', `${PODS}/running`, removal)).status).toBe(403)
      await api.patch('/api/v1/nodes/n1', { spec: { taints: null } })
      expect((await writes['status of a pod']()).status).toBe(200)
    })
})
