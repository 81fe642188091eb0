import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBuiltIns } from '../bootstrap.ts'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses'
const PODS = '/api/v1/namespaces/default/pods'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const createClass = (name: string, fields: object = {}) =>
  api.post(CLASSES, { metadata: { name }, value: 1000, ...fields })
const createPod = (spec: object = {}, name = 'p') =>
  api.post(PODS, { metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } })

describe('the Priority admission plugin', () => {
  it('SYS-27 writes the priority and policy of the named class into the pod', async () => {
    await createClass('high', { preemptionPolicy: 'Never' })
    const { json } = await createPod({ priorityClassName: 'high' })
    expect(json.spec).toMatchObject({ priorityClassName: 'high', priority: 1000, preemptionPolicy: 'Never' })
  })

  it('SYS-27 uses priority 0 without a class, and otherwise the default class with its name', async () => {
    const { json: plainPod } = await createPod({}, 'plain')
    expect(plainPod.spec).toMatchObject({ priority: 0, preemptionPolicy: 'PreemptLowerPriority' })
    expect(plainPod.spec.priorityClassName).toBeUndefined()
    await createClass('usual', { value: 7, globalDefault: true })
    const { json } = await createPod()
    expect(json.spec).toMatchObject({ priorityClassName: 'usual', priority: 7 })
  })

  it.each<[string, object]>([
    ['no PriorityClass with name none was found', { priorityClassName: 'none' }],
    [
      'the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from ' +
        'the given PriorityClass name',
      { priorityClassName: 'high', priority: 5 },
    ],
    [
      'the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from ' +
        'the given PriorityClass name',
      { priority: 5 },
    ],
    [
      'the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed ' +
        'PreemptLowerPriority from the given PriorityClass name',
      { priorityClassName: 'high', preemptionPolicy: 'Never' },
    ],
  ])('SYS-27 rejects a pod: %s', async (message, spec) => {
    await createClass('high')
    const { status, json } = await createPod(spec)
    expect([status, json.reason, json.message]).toEqual([403, 'Forbidden', `pods "p" is forbidden: ${message}`])
    expect((await api.get(`${PODS}/p`)).status).toBe(404)
  })

  it('SYS-27 accepts a priority that equals that of the class', async () => {
    await createClass('high')
    expect((await createPod({ priorityClassName: 'high', priority: 1000 })).status).toBe(201)
  })

  it('SYS-27 restores priority and policy that an update omits, and rejects others', async () => {
    await createClass('high')
    const { json: pod } = await createPod({ priorityClassName: 'high' })
    const { priority: _, preemptionPolicy: __, ...spec } = pod.spec
    const { status, json } = await api.put(`${PODS}/p`, { ...pod, spec })
    expect([status, json.spec.priority, json.spec.preemptionPolicy]).toEqual([200, 1000, 'PreemptLowerPriority'])
    expect((await api.put(`${PODS}/p`, { ...json, spec: { ...json.spec, priority: 3 } })).status).toBe(422)
  })

  it('SYS-27 keeps the priority of pods when their class is replaced', async () => {
    await createClass('high')
    await createPod({ priorityClassName: 'high' })
    await api.delete(`${CLASSES}/high`)
    await createClass('high', { value: 5 })
    expect((await api.get(`${PODS}/p`)).json.spec.priority).toBe(1000)
    const { status } = await api.patch(`${PODS}/p`, { metadata: { labels: { a: 'b' } } })
    expect(status).toBe(200)
  })

  it('SYS-27 rejects a second default class, on create and on update', async () => {
    await createClass('usual', { globalDefault: true })
    const message =
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. Only one default can exist'
    const { status, json } = await createClass('other', { globalDefault: true })
    expect([status, json.message]).toEqual([403, message])
    await createClass('other')
    expect((await api.patch(`${CLASSES}/other`, { globalDefault: true })).json.message).toBe(message)
    expect((await api.patch(`${CLASSES}/usual`, { description: 'still the default' })).status).toBe(200)
  })
})

describe('the built-in priority classes', () => {
  const builtIns = async () =>
    (await api.get(CLASSES)).json.items.map(({ metadata, value, preemptionPolicy }: any) => [
      metadata.name,
      value,
      preemptionPolicy,
    ])
  const EXPECTED = [
    ['system-cluster-critical', 2_000_000_000, 'PreemptLowerPriority'],
    ['system-node-critical', 2_000_001_000, 'PreemptLowerPriority'],
  ]

  it('SYS-27 exist from the start and are restored at the next start', async () => {
    expect(await builtIns()).toEqual(EXPECTED)
    await api.delete(`${CLASSES}/system-node-critical`)
    await api.delete(`${CLASSES}/system-cluster-critical`)
    await createClass('system-cluster-critical', { value: 2_000_000_000, preemptionPolicy: 'Never' })
    await createBuiltIns(api.server.objects)
    expect(await builtIns()).toEqual(EXPECTED)
    const { revision } = api.store
    await createBuiltIns(api.server.objects)
    expect(api.store.revision).toBe(revision)
  })
})
