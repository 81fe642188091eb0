// Tests objects that are served in several versions and groups, and the effect of disabling a version or a feature.
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { memoryMedium } from '../store/index.ts'
import { createServerFixture, type Json, type ServerFixture } from './server.fixture.ts'

const STORAGE = '/apis/storage.k8s.io'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const EVENTS = '/api/v1/namespaces/default/events'
const NEW_EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'

let api: ServerFixture
afterEach(() => api.store.close())

const aClaim = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
})

describe('a kind with several versions', () => {
  it('PROV-1 serves the same storage class in each version', async () => {
    api = await createServerFixture()
    const createdObject = (
      await api.post(`${STORAGE}/v1beta1/storageclasses`, {
        metadata: { name: 'fast' },
        provisioner: 'example.com/p',
      })
    ).json
    expect(createdObject.apiVersion).toBe('storage.k8s.io/v1beta1')
    const stable = (await api.get(`${STORAGE}/v1/storageclasses/fast`)).json
    expect(stable).toEqual({ ...createdObject, apiVersion: 'storage.k8s.io/v1' })
    await api.patch(`${STORAGE}/v1/storageclasses/fast`, { allowVolumeExpansion: true })
    expect((await api.get(`${STORAGE}/v1beta1/storageclasses/fast`)).json.allowVolumeExpansion).toBe(true)
    await api.delete(`${STORAGE}/v1beta1/storageclasses/fast`)
    expect((await api.get(`${STORAGE}/v1/storageclasses/fast`)).status).toBe(404)
  })

  it('VAC-1 serves the same attributes class in each version', async () => {
    api = await createServerFixture()
    const body = { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters: { iops: '1' } }
    await api.post(`${STORAGE}/v1alpha1/volumeattributesclasses`, body)
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      const { json } = await api.get(`${STORAGE}/${version}/volumeattributesclasses`)
      expect(json).toMatchObject({
        kind: 'VolumeAttributesClassList',
        apiVersion: `storage.k8s.io/${version}`,
        items: [{ driverName: 'd.example.com', parameters: { iops: '1' } }],
      })
    }
    expect((await api.post(`${STORAGE}/v1/volumeattributesclasses`, body)).json.reason).toBe('AlreadyExists')
  })

  it('SYS-10 rejects a body of another version', async () => {
    api = await createServerFixture()
    const body = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'a' },
      provisioner: 'example.com/p',
    }
    expect((await api.post(`${STORAGE}/v1beta1/storageclasses`, body)).status).toBe(400)
  })
})

describe('events', () => {
  const coreEvent = {
    metadata: { name: 'e' },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'p', uid: 'u' },
    type: 'Warning',
    reason: 'NoRoom',
    message: 'nothing is left',
    source: { component: 'tester', host: 'here' },
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:01:00Z',
    count: 3,
  }

  it('that are created in one group can be read in the other', async () => {
    api = await createServerFixture()
    await api.post(EVENTS, coreEvent)
    expect((await api.get(`${NEW_EVENTS}/e`)).json).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      regarding: coreEvent.involvedObject,
      note: 'nothing is left',
      reason: 'NoRoom',
      deprecatedCount: 3,
      deprecatedFirstTimestamp: coreEvent.firstTimestamp,
      deprecatedSource: coreEvent.source,
    })
    const newEvent = {
      metadata: { name: 'n' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'example.com/tester',
      reportingInstance: 'tester-1',
      action: 'Testing',
      reason: 'Tested',
      type: 'Normal',
      regarding: coreEvent.involvedObject,
      note: 'all is well',
    }
    expect((await api.post(NEW_EVENTS, newEvent)).status).toBe(201)
    expect((await api.get(`${EVENTS}/n`)).json).toMatchObject({
      apiVersion: 'v1',
      involvedObject: coreEvent.involvedObject,
      message: 'all is well',
      reportingComponent: 'example.com/tester',
    })
  })

  it('can be selected and patched in either group, and watched in events.k8s.io', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${NEW_EVENTS}?watch=1&resourceVersion=${api.store.revision}`)
    await api.post(EVENTS, coreEvent)
    await api.patch(`${EVENTS}/e`, { count: 4 })
    await watch.waitUntil((events) => events.length === 2)
    expect(watch.events[1]).toMatchObject({
      type: 'MODIFIED',
      object: { apiVersion: 'events.k8s.io/v1', deprecatedCount: 4 },
    })
    const names = async (url: string, selector: string) =>
      (await api.get(`${url}?fieldSelector=${encodeURIComponent(selector)}`)).json.items?.map(
        ({ metadata }: Json) => metadata.name,
      )
    expect(await names(EVENTS, 'involvedObject.kind=Pod,involvedObject.name=p')).toEqual(['e'])
    expect(await names(EVENTS, 'involvedObject.name=q')).toEqual([])
    expect(await names(NEW_EVENTS, 'regarding.name=p,type=Warning')).toEqual(['e'])
    expect(await names(NEW_EVENTS, 'involvedObject.name=p')).toBeUndefined()
    await api.patch(`${NEW_EVENTS}/e`, { series: { count: 2, lastObservedTime: '2026-01-01T00:02:00.000000Z' } })
    expect((await api.get(`${EVENTS}/e`)).json.series).toEqual({
      count: 2,
      lastObservedTime: '2026-01-01T00:02:00.000000Z',
    })
  })

  it('expire an hour after their last change', async () => {
    api = await createServerFixture()
    await api.post(EVENTS, coreEvent)
    await api.clock.advance(45 * 60_000)
    await api.patch(`${EVENTS}/e`, { count: 4 })
    await api.clock.advance(45 * 60_000)
    expect((await api.get(`${EVENTS}/e`)).status).toBe(200)
    const watch = await api.watch(`${EVENTS}?watch=1&resourceVersion=${api.store.revision}`)
    await api.clock.advance(20 * 60_000)
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events[0]).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'e' } } })
    expect((await api.get(`${EVENTS}/e`)).status).toBe(404)
  })
})

describe('a disabled version or feature', () => {
  it('SYS-15 returns 404, and keeps its objects until it is enabled again', async () => {
    const medium = memoryMedium()
    api = await createServerFixture({ medium })
    const body = { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters: { iops: '1' } }
    const createdObject = (await api.post(`${STORAGE}/v1/volumeattributesclasses`, body)).json
    await api.store.close()

    const disabledNames = ['v1', 'v1beta1', 'v1alpha1'].map(
      (version) => `storage.k8s.io/${version}/volumeattributesclasses=false`,
    )
    api = await createServerFixture({ medium, runtimeConfig: disabledNames.join(',') })
    for (const url of ['/silver', '', '?watch=1']) {
      expect((await api.get(`${STORAGE}/v1/volumeattributesclasses${url}`)).json).toMatchObject({
        code: 404,
        reason: 'NotFound',
      })
    }
    expect((await api.post(`${STORAGE}/v1/volumeattributesclasses`, body)).status).toBe(404)
    const { resources } = (await api.get(`${STORAGE}/v1`)).json
    expect(resources.map(({ name }: Json) => name)).not.toContain('volumeattributesclasses')
    expect((await api.get(`${STORAGE}/v1/storageclasses`)).status).toBe(200)
    await api.store.close()

    api = await createServerFixture({ medium })
    expect((await api.get(`${STORAGE}/v1/volumeattributesclasses/silver`)).json).toEqual(createdObject)
  })

  it('SYS-15 is absent from discovery, OpenAPI and routing', async () => {
    const settings = ALL_KINDS.filter((kind) => !kind.isForeign && kind.plural !== 'namespaces').flatMap((kind) =>
      kind.versions.flatMap((version) => {
        const groupVersion = kind.group ? `${kind.group}/${version}` : version
        return kind.group ? [groupVersion, `${groupVersion}/${kind.plural}`] : [`${groupVersion}/${kind.plural}`]
      }),
    )
    const anyConfig = fc.subarray([...new Set(settings)], { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(anyConfig, async (disabledNames) => {
        api = await createServerFixture({ runtimeConfig: disabledNames.map((name) => `${name}=false`).join(',') })
        const readJson = async (path: string) => (await api.get(path)).json
        const aggregatedAccept = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' }
        const discoveredGroups = (
          await Promise.all(['/api', '/apis'].map(async (path) => (await api.get(path, aggregatedAccept)).json.items))
        ).flat()
        const documents = (await readJson('/openapi/v3')).paths
        const { paths: v2 } = await readJson('/openapi/v2')
        for (const kind of ALL_KINDS.filter(({ isForeign }) => !isForeign)) {
          for (const version of kind.versions) {
            const base = kind.group ? `apis/${kind.group}/${version}` : `api/${version}`
            const groupVersion = kind.group ? `${kind.group}/${version}` : version
            const isEnabled =
              !disabledNames.includes(groupVersion) && !disabledNames.includes(`${groupVersion}/${kind.plural}`)
            const label = `${groupVersion}/${kind.plural} with ${disabledNames} disabled`

            const legacy = await api.get(`/${base}`)
            const names = legacy.status === 200 ? legacy.json.resources.map(({ name }: Json) => name) : []
            expect(names.includes(kind.plural), `legacy discovery of ${label}`).toBe(isEnabled)

            const group = discoveredGroups.find(({ metadata }: Json) => (metadata.name ?? '') === kind.group)
            const entries = group?.versions.find((candidate: Json) => candidate.version === version)?.resources ?? []
            const isDiscovered = entries.some(({ resource }: Json) => resource === kind.plural)
            expect(isDiscovered, `aggregated discovery of ${label}`).toBe(isEnabled)

            const v3 = documents[base] ? (await readJson(documents[base].serverRelativeURL)).paths : {}
            for (const [name, paths] of Object.entries({ v3, v2 })) {
              const isDescribed = Object.keys(paths).some(
                (path) => path.startsWith(`/${base}/`) && path.split('/').includes(kind.plural),
              )
              expect(isDescribed, `OpenAPI ${name} of ${label}`).toBe(isEnabled)
            }
            if (kind.isReview) continue
            expect((await api.get(`/${base}/${kind.plural}`)).status, `a list of ${label}`).toBe(isEnabled ? 200 : 404)
          }
        }
        await api.store.close()
      }),
      { numRuns: 15 },
    )
  })

  it('SYS-15 does not affect other versions', async () => {
    api = await createServerFixture({ runtimeConfig: 'storage.k8s.io/v1alpha1=false' })
    expect((await api.get(`${STORAGE}/v1alpha1/volumeattributesclasses`)).status).toBe(404)
    expect((await api.get(`${STORAGE}/v1alpha1`)).status).toBe(404)
    expect((await api.get(`${STORAGE}/v1beta1/volumeattributesclasses`)).status).toBe(200)
  })

  it('VAC-12 drops the attributes class of new claims, and keeps that of existing claims', async () => {
    const medium = memoryMedium()
    api = await createServerFixture({ medium })
    const existingClaim = (await api.post(CLAIMS, aClaim('old', { volumeAttributesClassName: 'silver' }))).json
    await api.store.close()
    api = await createServerFixture({ medium, gates: 'VolumeAttributesClass=false' })
    expect(
      (await api.post(CLAIMS, aClaim('new', { volumeAttributesClassName: 'silver' }))).json.spec
        .volumeAttributesClassName,
    ).toBeUndefined()
    expect((await api.patch(`${CLAIMS}/old`, { metadata: { labels: { a: 'b' } } })).json.spec).toEqual(
      existingClaim.spec,
    )
  })

  it('REX-10 keeps the high-water mark of existing claims, and sets none on new claims', async () => {
    const medium = memoryMedium()
    api = await createServerFixture({ medium })
    await api.post(CLAIMS, aClaim('old'))
    await api.store.close()
    api = await createServerFixture({ medium, gates: 'RecoverVolumeExpansionFailure=false' })
    expect((await api.get(`${CLAIMS}/old`)).json.spec.allocatedResources).toEqual({ storage: '1Gi' })
    expect(
      (await api.patch(`${CLAIMS}/old`, { metadata: { labels: { a: 'b' } } })).json.spec.allocatedResources,
    ).toEqual({ storage: '1Gi' })
    expect((await api.post(CLAIMS, aClaim('new'))).json.spec.allocatedResources).toBeUndefined()
  })

  it('drops iops and throughput of new claims, and keeps those of existing claims', async () => {
    const medium = memoryMedium()
    api = await createServerFixture({ medium })
    const requests = { storage: '1Gi', iops: '500' }
    await api.post(CLAIMS, aClaim('old', { resources: { requests } }))
    await api.store.close()
    api = await createServerFixture({ medium, gates: 'VolumeProvisionedIO=false' })
    expect((await api.post(CLAIMS, aClaim('new', { resources: { requests } }))).json.spec?.resources.requests).toEqual({
      storage: '1Gi',
    })
    expect((await api.get(`${CLAIMS}/old`)).json.spec.resources.requests).toEqual(requests)
  })
})
