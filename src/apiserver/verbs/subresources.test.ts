import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const PODS = '/api/v1/namespaces/default/pods'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
  await api.post(PODS, { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } })
})
afterEach(() => api.store.close())

const bind = (target: object, metadata: object = { name: 'p' }) => api.post(`${PODS}/p/binding`, { metadata, target })
const getPod = async () => (await api.get(`${PODS}/p`)).json

describe('pods/binding', () => {
  it('assigns a pod to a node and rejects a second assignment', async () => {
    const { status, json } = await bind({ kind: 'Node', name: 'n1' }, { name: 'p', annotations: { by: 'tester' } })
    expect(status).toBe(201)
    expect(json).toMatchObject({ kind: 'Status', status: 'Success' })
    expect(await getPod()).toMatchObject({
      metadata: { annotations: { by: 'tester' } },
      spec: { nodeName: 'n1' },
      status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
    })
    expect((await bind({ name: 'n2' })).json).toMatchObject({ code: 409, reason: 'Conflict' })
    expect((await getPod()).spec.nodeName).toBe('n1')
  })

  it('keeps metadata.generation, and clears status.nominatedNodeName', async () => {
    await api.patch(`${PODS}/p/status`, { status: { nominatedNodeName: 'n2' } }, 'merge')
    const podBefore = await getPod()
    expect(podBefore.status.nominatedNodeName).toBe('n2')
    await bind({ kind: 'Node', name: 'n1' })
    const { metadata, status } = await getPod()
    expect(metadata.generation).toBe(podBefore.metadata.generation)
    expect(status.nominatedNodeName).toBe(undefined)
  })

  it('returns 409 for a pod with another UID', async () => {
    expect((await bind({ name: 'n1' }, { name: 'p', uid: 'other' })).status).toBe(409)
  })

  it('does not assign the pod in a dry run', async () => {
    expect(
      (await api.post(`${PODS}/p/binding?dryRun=All`, { metadata: { name: 'p' }, target: { name: 'n1' } })).status,
    ).toBe(201)
    expect((await getPod()).spec.nodeName).toBeUndefined()
  })

  it.each([
    ['another name', { name: 'n1' }, { name: 'q' }, 400],
    ['no node', {}, { name: 'p' }, 400],
    ['a target that is not a node', { kind: 'Cloud', name: 'n1' }, { name: 'p' }, 400],
  ])('SYS-10 rejects a binding with %s', async (_, target, metadata, code) => {
    expect((await bind(target, metadata)).status).toBe(code)
  })

  it('returns 404 for a pod that does not exist, and 405 for other methods', async () => {
    expect((await api.post(`${PODS}/nowhere/binding`, { target: { name: 'n' } })).status).toBe(404)
    expect((await api.get(`${PODS}/p/binding`)).status).toBe(405)
  })
})

describe('pods/status', () => {
  it('keeps observedGeneration of status and conditions if a write omits it', async () => {
    const readyCondition = { type: 'Ready', status: 'False', observedGeneration: 1 }
    await api.patch(`${PODS}/p/status`, { status: { observedGeneration: 1, conditions: [readyCondition] } }, 'merge')
    const { observedGeneration: _, ...withoutGeneration } = readyCondition
    const body = { ...(await getPod()), status: { conditions: [{ ...withoutGeneration, status: 'True' }] } }
    expect((await api.put(`${PODS}/p/status`, body)).status).toBe(200)
    expect((await getPod()).status).toMatchObject({
      observedGeneration: 1,
      conditions: [{ ...readyCondition, status: 'True' }],
    })
  })
})

describe('pods/ephemeralcontainers', () => {
  const add = (...ephemeralContainers: object[]) =>
    api.patch(`${PODS}/p/ephemeralcontainers`, { spec: { ephemeralContainers } })

  it('adds containers, with defaults, and changes nothing else', async () => {
    const { status, json } = await api.patch(`${PODS}/p/ephemeralcontainers`, {
      metadata: { labels: { a: 'b' } },
      spec: { activeDeadlineSeconds: 5, ephemeralContainers: [{ name: 'debug', image: 'busybox' }] },
    })
    expect(status).toBe(200)
    expect(json.spec.ephemeralContainers).toMatchObject([
      { name: 'debug', terminationMessagePath: '/dev/termination-log', imagePullPolicy: 'Always' },
    ])
    expect(json.spec.activeDeadlineSeconds).toBeUndefined()
    expect(json.metadata).toMatchObject({ generation: 2 })
    expect(json.metadata.labels).toBeUndefined()
    expect(
      (await add({ name: 'second', image: 'busybox', targetContainerName: 'c' })).json.spec.ephemeralContainers,
    ).toHaveLength(2)
    expect((await api.get(`${PODS}/p/ephemeralcontainers`)).json.spec.ephemeralContainers).toHaveLength(2)
  })

  it.each([
    [{ name: 'c', image: 'i' }, 'spec.ephemeralContainers[0].name: Duplicate value'],
    [{ name: 'd', image: 'i', livenessProbe: { exec: { command: ['x'] } } }, 'livenessProbe: Forbidden'],
    [{ name: 'd', image: 'i', resources: { limits: { cpu: '1' } } }, 'resources: Forbidden'],
    [{ name: 'd', image: 'i', targetContainerName: 'none' }, 'targetContainerName: Not found'],
    [{ name: 'd' }, 'image: Required value'],
  ])('rejects %j', async (container, message) => {
    const { status, json } = await add(container)
    expect([status, json.message]).toEqual([422, expect.stringContaining(message)])
    expect((await getPod()).spec.ephemeralContainers).toBeUndefined()
  })

  it('rejects a change or the removal of a container', async () => {
    await add({ name: 'debug', image: 'busybox' })
    expect((await add({ name: 'debug', image: 'other' })).json.message).toContain('"debug" may not be changed')
    const body = { ...(await getPod()), spec: { ...(await getPod()).spec, ephemeralContainers: [] } }
    expect((await api.put(`${PODS}/p/ephemeralcontainers`, body)).json.message).toContain('"debug" may not be removed')
    expect((await api.put(`${PODS}/p`, body)).status).toBe(422)
  })
})

describe('pods/eviction', () => {
  it('deletes the pod', async () => {
    const { status } = await api.post(`${PODS}/p/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p' },
    })
    expect(status).toBe(201)
    expect((await api.get(`${PODS}/p`)).status).toBe(404)
  })
})

describe('namespaces/finalize', () => {
  it('removes a terminating namespace when its finalizers are empty', async () => {
    await api.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    const terminatingNamespace = (await api.delete('/api/v1/namespaces/shop')).json
    expect(terminatingNamespace).toMatchObject({
      status: { phase: 'Terminating' },
      spec: { finalizers: ['kubernetes'] },
    })
    const { status } = await api.put('/api/v1/namespaces/shop/finalize', {
      ...terminatingNamespace,
      spec: { finalizers: [] },
    })
    expect(status).toBe(200)
    expect((await api.get('/api/v1/namespaces/shop')).status).toBe(404)
  })

  it('is needed to change spec.finalizers, which a patch of the namespace keeps', async () => {
    await api.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await api.patch('/api/v1/namespaces/shop', { spec: { finalizers: [] } }, 'merge')
    expect((await api.get('/api/v1/namespaces/shop')).json.spec.finalizers).toEqual(['kubernetes'])
  })
})

it('the server returns 404 for an unknown subresource', async () => {
  expect((await api.get(`${PODS}/p/unicorn`)).status).toBe(404)
  expect((await api.get(`${PODS}/p/resize`)).status).toBe(404)
})
