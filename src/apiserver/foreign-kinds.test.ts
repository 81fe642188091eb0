import { describe, expect, it } from 'vitest'
import { createServerFixture, type Json } from './server.fixture.ts'

describe('foreign kinds', () => {
  it('CAP-19 are served as empty lists and watches if kube-scheduler watches them', async () => {
    const { get, watch } = await createServerFixture()
    for (const path of [
      '/api/v1/services',
      '/apis/apps/v1/replicasets',
      '/apis/policy/v1/poddisruptionbudgets',
      '/apis/resource.k8s.io/v1/resourceslices',
      '/apis/resource.k8s.io/v1/devicetaintrules',
      '/apis/resource.k8s.io/v1beta2/devicetaintrules',
      '/apis/scheduling.k8s.io/v1beta1/podgroups',
    ]) {
      const { status, json } = await get(path)
      expect([status, json.items], path).toEqual([200, []])
      const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
      const stream = await watch(`${path}?watch=true&${query}`)
      await stream.waitUntil((events) => events.length > 0)
      expect(stream.events[0]).toMatchObject({
        type: 'BOOKMARK',
        object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
      })
      stream.close()
    }
  })

  it('reject writes with 405', async () => {
    const { post } = await createServerFixture()
    for (const [path, name] of [
      ['/api/v1/namespaces/default/services', 'services'],
      ['/apis/apps/v1/namespaces/default/deployments', 'deployments.apps'],
    ] as const) {
      const { status, json } = await post(path, { metadata: { name: 'x' }, spec: {} })
      expect([status, json.reason]).toEqual([405, 'MethodNotAllowed'])
      expect(json.message).toContain(`Stowage does not store ${name}, so they cannot be written`)
    }
  })

  it('include CustomResourceDefinitions, whose empty list has warnings that name the served kinds', async () => {
    const { get } = await createServerFixture()
    const { headers, json } = await get('/apis/apiextensions.k8s.io/v1/customresourcedefinitions')
    expect([json.items, headers.warning]).toEqual([
      [],
      expect.arrayContaining([
        expect.stringContaining('this server has no custom resources; check the apiVersion and kind of the manifest'),
        expect.stringMatching(/apiVersion v1 is for .*\bPersistentVolumeClaim\b/),
        expect.stringMatching(/apiVersion storage\.k8s\.io\/v1 is for .*\bStorageClass\b.*\bVolumeAttachment\b/),
      ]),
    ])
    expect(String(headers.warning)).not.toMatch(/Service\b|v1beta1|Review/)
  })

  it('are not in discovery unless they are declared discoverable, such as Service', async () => {
    const { get } = await createServerFixture()
    expect((await get('/apis')).text).not.toContain('"policy"')
    expect((await get('/apis/apps/v1')).text).not.toContain('deployments')
    expect((await get('/api/v1')).text).not.toContain('replicationcontrollers')
    const services = (await get('/api/v1')).json.resources.find(({ name }: Json) => name === 'services')
    expect([services.verbs, services.categories]).toEqual([['get', 'list', 'watch'], ['all']])
  })
})
