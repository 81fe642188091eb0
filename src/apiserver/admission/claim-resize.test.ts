// Changes of a claim's size through the whole server. The rules are in src/api/kinds/claim/claim-update-rules.ts and
// claim-resize.ts.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { calculateUsage, formatAmounts } from '../../api/quota/index.ts'
import { memoryMedium } from '../../store/index.ts'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const QUOTAS = '/api/v1/namespaces/default/resourcequotas'

const CANNOT_GROW =
  'persistentvolumeclaims "a" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'
const IMMUTABLE =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
const BELOW_CAPACITY = 'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'
const BELOW_PREVIOUS = 'spec.resources.requests.storage: Forbidden: field can not be less than previous value'

let api: ServerFixture
const start = async (options: Parameters<typeof createServerFixture>[0] = {}) => {
  api = await createServerFixture(options)
  await aClass('grows', { allowVolumeExpansion: true })
}
beforeEach(() => start())
afterEach(() => api.store.close())

const aClass = (name: string, more: object = {}) =>
  api.post(CLASSES, { metadata: { name }, provisioner: 'd.example.com', ...more })
const sized = (storage: string) => ({ resources: { requests: { storage } } })
const created = async (size: string, spec: object = {}) => {
  const body = { accessModes: ['ReadWriteOnce'], storageClassName: 'grows', ...sized(size), ...spec }
  const answer = await api.post(CLAIMS, { metadata: { name: 'a' }, spec: body })
  expect(answer.status, answer.text).toBe(201)
}
const setStatus = async (status: object) => {
  const answer = await api.patch(`${CLAIMS}/a/status`, { status }, 'merge')
  expect(answer.status, answer.text).toBe(200)
  return answer.json
}
/** A bound claim that requests `size`, with a volume of `capacity`. */
const bound = async (size: string, { capacity = size, spec = {} as object } = {}) => {
  await created(size, spec)
  await setStatus({ phase: 'Bound', capacity: { storage: capacity } })
}
const resize = (size: string) => api.patch(`${CLAIMS}/a`, { spec: sized(size) }, 'merge')
const claim = async () => (await api.get(`${CLAIMS}/a`)).json
const refused = async (size: string, code: number, why: string) => {
  const before = await claim()
  const { status, json } = await resize(size)
  expect(status, json.message).toBe(code)
  expect(json.message).toContain(why)
  expect(await claim()).toEqual(before)
}
const accepted = async (size: string) => {
  const { status, json } = await resize(size)
  expect(status, json.message).toBe(200)
  return json.spec
}

describe('growing a claim', () => {
  it('REX-1 (58) is accepted if the claim is bound and its class allows expansion, and raises the high-water mark in the same write', async () => {
    await bound('10Gi')
    expect(await accepted('100Gi')).toMatchObject({ ...sized('100Gi'), allocatedResources: { storage: '100Gi' } })
  })

  it.each<[string, object, () => Promise<unknown>]>([
    ['forbids it', { storageClassName: 'fixed' }, () => aClass('fixed')],
    ['says nothing', { storageClassName: 'no' }, () => aClass('no', { allowVolumeExpansion: false })],
    ['does not exist', { storageClassName: 'gone' }, async () => {}],
    ['is named empty', { storageClassName: '' }, async () => {}],
  ])('REX-1 (35) (58) is rejected if the class %s', async (_what, spec, prepare) => {
    await prepare()
    await bound('10Gi', { spec })
    await refused('20Gi', 403, CANNOT_GROW)
  })

  it('REX-1 is rejected in the same write as a change of class: the new class did not provision the volume', async () => {
    await bound('10Gi', { spec: { storageClassName: null } })
    const spec = { ...sized('20Gi'), storageClassName: 'grows' }
    const { status, json } = await api.patch(`${CLAIMS}/a`, { spec }, 'merge')
    expect([status, json.message]).toEqual([403, CANNOT_GROW])
  })

  it('REX-1 uses the class of the beta annotation if the claim has it', async () => {
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'grows' }
    await api.post(CLAIMS, {
      metadata: { name: 'a', annotations },
      spec: { accessModes: ['ReadWriteOnce'], ...sized('1Gi') },
    })
    await setStatus({ phase: 'Bound', capacity: { storage: '1Gi' } })
    await accepted('2Gi')
  })

  it.each(['Pending', 'Lost'])(
    'REX-1 (58) is rejected while the claim is %s; an update with the same size is not',
    async (phase) => {
      await created('10Gi')
      await setStatus({ phase })
      await refused('20Gi', 422, IMMUTABLE)
      await accepted('10Gi')
      await accepted('10240Mi')
    },
  )

  it('REX-1 uses the current allowVolumeExpansion of the class', async () => {
    await bound('10Gi')
    await api.patch(`${CLASSES}/grows`, { allowVolumeExpansion: false }, 'merge')
    await refused('20Gi', 403, CANNOT_GROW)
    await api.patch(`${CLASSES}/grows`, { allowVolumeExpansion: true }, 'merge')
    await accepted('20Gi')
  })

  it('REX-1 compares with the previous request, not with the capacity of the volume', async () => {
    await bound('10Gi', { capacity: '100Gi' })
    await api.patch(`${CLASSES}/grows`, { allowVolumeExpansion: false }, 'merge')
    await refused('50Gi', 403, CANNOT_GROW)
  })

  it('REX-8 is accepted and charged while the claim is being deleted, and released when it is removed', async () => {
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
    await bound('10Gi')
    const used = async () => (await api.get(`${QUOTAS}/q`)).json.status.used['requests.storage']
    expect((await api.delete(`${CLAIMS}/a`)).json.metadata.deletionTimestamp).toBeDefined()
    await accepted('20Gi')
    expect(await used()).toBe('20Gi')
    await api.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    expect(await used()).toBe('0')
  })

  it.each([
    ['0', 'must be greater than zero'],
    ['-5Gi', 'must be greater than zero'],
  ])('REX-8 to %s is rejected', async (size, why) => {
    await bound('10Gi')
    await refused(size, 422, why)
  })

  it.each(['lots', '10GB', '', '1e5000', '9'.repeat(300)])(
    'REX-8 to %j is rejected as an invalid quantity',
    async (size) => {
      await bound('10Gi')
      const { status } = await resize(size)
      expect([400, 422]).toContain(status)
      expect((await claim()).spec).toMatchObject(sized('10Gi'))
    },
  )

  it('REX-8 to more bytes than an int64 holds is rejected', async () => {
    await bound('10Gi')
    await refused('1e30', 422, 'Invalid value: "1e30": must be at most 9223372036854775807')
    // As in Kubernetes, a quantity in binary units is capped at 63 bits.
    expect(await accepted('9999Ei')).toMatchObject(sized('9223372036854775807'))
  })

  it('REX-1 accepts a fraction of a byte with a warning', async () => {
    await bound('1Gi')
    const { status, headers } = await resize('2147483648500m')
    expect(status).toBe(200)
    expect(JSON.stringify(headers)).toContain('fractional byte value')
  })
})

describe('lowering a request', () => {
  it.each(['13Gi', '10Gi'])('REX-2 (52) from 15Gi to %s is accepted where the volume has 10Gi', async (size) => {
    await bound('15Gi', { capacity: '10Gi' })
    expect(await accepted(size)).toMatchObject({ ...sized(size), allocatedResources: { storage: '15Gi' } })
  })

  it.each(['3Gi', '10737418239', '9Gi'])(
    'REX-2 (52) to %s, below the capacity of the volume, is rejected',
    async (size) => {
      await bound('15Gi', { capacity: '10Gi' })
      await refused(size, 422, BELOW_CAPACITY)
    },
  )

  it('REX-2 does not need a class that allows expansion', async () => {
    await bound('15Gi', { capacity: '10Gi' })
    await api.delete(`${CLASSES}/grows`)
    await accepted('12Gi')
    await refused('13Gi', 403, CANNOT_GROW)
  })

  it('REX-2 (52) is rejected while the claim is not bound', async () => {
    await created('15Gi')
    await refused('10Gi', 422, IMMUTABLE)
  })

  it('REX-2 reports all errors in one response', async () => {
    await bound('15Gi', { capacity: '10Gi' })
    const { json } = await api.patch(`${CLAIMS}/a`, { spec: { ...sized('5Gi'), volumeMode: 'Block' } }, 'merge')
    expect(json.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      'spec',
      'spec.resources.requests.storage',
      'volumeMode',
    ])
  })

  it('REX-2 conflicts if the update is based on a stale version', async () => {
    await bound('15Gi', { capacity: '10Gi' })
    const seen = await claim()
    await accepted('20Gi')
    const { status } = await api.put(`${CLAIMS}/a`, { ...seen, spec: { ...seen.spec, ...sized('12Gi') } })
    expect(status).toBe(409)
    expect((await claim()).spec).toMatchObject(sized('20Gi'))
  })
})

describe('the high-water mark of a claim', () => {
  const mark = async () => (await claim()).spec.allocatedResources

  it('REX-3 cannot be set, changed or removed by any kind of write', async () => {
    await bound('10Gi')
    const wanted = { storage: '1Gi' }
    const headers = (type: string) => ({ 'content-type': `application/${type}` })
    const { metadata, ...own } = await claim()
    const body = { metadata: { name: metadata.name }, ...own, spec: { ...own.spec, allocatedResources: wanted } }
    const applied = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'a' } }
    const writes: [string, () => Promise<{ status: number; text: string }>][] = [
      ['merge', () => api.patch(`${CLAIMS}/a`, { spec: { allocatedResources: wanted } }, 'merge')],
      ['merge away', () => api.patch(`${CLAIMS}/a`, { spec: { allocatedResources: null } }, 'merge')],
      ['strategic', () => api.patch(`${CLAIMS}/a`, { spec: { allocatedResources: { $patch: 'delete' } } })],
      ['json', () => api.patch(`${CLAIMS}/a`, [{ op: 'remove', path: '/spec/allocatedResources' }], 'json')],
      ['put', () => api.put(`${CLAIMS}/a`, { ...body, metadata: { ...metadata, resourceVersion: undefined } })],
      ['put of status', () => api.put(`${CLAIMS}/a/status`, body)],
      [
        'apply',
        () =>
          api.call(
            'PATCH',
            `${CLAIMS}/a?fieldManager=me&force=true`,
            JSON.stringify({ ...applied, spec: { allocatedResources: wanted } }),
            headers('apply-patch+yaml'),
          ),
      ],
    ]
    for (const [how, write] of writes) {
      const { status, text } = await write()
      expect(status, `${how}: ${text}`).toBe(200)
      expect(await mark(), how).toEqual({ storage: '10Gi' })
    }
  })

  it('REX-3 REX-4 stays charged after the request is lowered, also across a restart of the server', async () => {
    await api.store.close()
    const medium = memoryMedium()
    await start({ medium })
    const used = async () => (await api.get(`${QUOTAS}/q`)).json.status.used['requests.storage']
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
    await bound('10Gi')
    for (const size of ['90Gi', '20Gi', '10Gi', '50Gi', '10Gi']) await accepted(size)
    expect(await used()).toBe('90Gi')
    await api.store.close()
    api = await createServerFixture({ medium })
    await refused('101Gi', 403, 'exceeded quota: q, requested: requests.storage=11Gi, used: requests.storage=90Gi')
    await accepted('100Gi')
    expect(await used()).toBe('100Gi')
  })
})

describe('with the feature gate off', () => {
  const off = { gates: 'RecoverVolumeExpansionFailure=false' }

  it('REX-10 (52) rejects a lower request and accepts a higher one', async () => {
    await api.store.close()
    await start(off)
    await bound('15Gi', { capacity: '10Gi' })
    await refused('12Gi', 422, BELOW_PREVIOUS)
    expect((await accepted('20Gi')).allocatedResources).toBeUndefined()
  })

  it('REX-10 accepts a lower request of a claim with a high-water mark, which stays charged', async () => {
    await api.store.close()
    const medium = memoryMedium()
    await start({ medium })
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
    await bound('15Gi', { capacity: '10Gi' })
    await api.store.close()
    api = await createServerFixture({ ...off, medium })
    expect(await accepted('12Gi')).toMatchObject({ allocatedResources: { storage: '15Gi' } })
    await refused('9Gi', 422, BELOW_CAPACITY)
    expect(await accepted('30Gi')).toMatchObject({ allocatedResources: { storage: '30Gi' } })
    expect(await accepted('10Gi')).toMatchObject({ allocatedResources: { storage: '30Gi' } })
    expect((await api.get(`${QUOTAS}/q`)).json.status.used).toEqual({ 'requests.storage': '30Gi' })
  })

  it('REX-10 (55) drops the expansion fields that a controller writes, unless the claim had them', async () => {
    await api.store.close()
    const medium = memoryMedium()
    await start({ ...off, medium })
    await bound('10Gi')
    const written = {
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    }
    expect((await setStatus(written)).status).toEqual({ phase: 'Bound', capacity: { storage: '10Gi' } })
    await api.store.close()
    api = await createServerFixture({ medium })
    await setStatus(written)
    await api.store.close()
    api = await createServerFixture({ ...off, medium })
    const next = {
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      allocatedResources: { storage: '30Gi' },
    }
    expect((await setStatus(next)).status).toMatchObject(next)
    const bad = await api.patch(`${CLAIMS}/a/status`, { status: { allocatedResourceStatuses: { storage: 'No' } } })
    expect(bad.status, 'rules hold for what is kept').toBe(422)
  })
})

describe('quota by actual size', () => {
  const used = async () => (await api.get(`${QUOTAS}/q`)).json.status.used['requests.storage']
  const startActual = async () => {
    await api.store.close()
    await start({ expansionQuota: 'actual' })
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
  }

  it('PLUS-14 is released by the write that reports the size', async () => {
    await startActual()
    await bound('10Gi')
    await accepted('90Gi')
    await setStatus({
      allocatedResources: { storage: '90Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    })
    await accepted('20Gi')
    await setStatus({
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    })
    expect(await used()).toBe('90Gi')
    const settled = await setStatus({ capacity: { storage: '20Gi' }, allocatedResourceStatuses: null })
    expect(settled.spec.allocatedResources).toEqual({ storage: '20Gi' })
    expect(await used()).toBe('20Gi')
    const counted = calculateUsage({ hard: { 'requests.storage': '100Gi' } }, ['requests.storage'], () => [settled])
    expect(formatAmounts(counted), 'every counter computes the same sum, independent of the flag').toEqual({
      'requests.storage': '20Gi',
    })
    await accepted('100Gi')
    expect(await used()).toBe('100Gi')
  })

  it('PLUS-14 is not released by a dry run of that write', async () => {
    await startActual()
    await bound('10Gi')
    await accepted('90Gi')
    const { status, json } = await api.patch(`${CLAIMS}/a?dryRun=All`, { spec: sized('10Gi') }, 'merge')
    expect([status, json.spec.allocatedResources]).toEqual([200, { storage: '10Gi' }])
    expect(await used()).toBe('90Gi')
  })

  it('PLUS-14 serializes an expansion and a lower request at the same time', async () => {
    await startActual()
    for (let round = 0; round < 20; round++) {
      await bound('10Gi')
      await accepted('90Gi')
      const { resourceVersion } = (await claim()).metadata
      const begin = () =>
        api.patch(
          `${CLAIMS}/a/status`,
          {
            metadata: { resourceVersion },
            status: {
              allocatedResources: { storage: '90Gi' },
              allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
            },
          },
          'merge',
        )
      const both = round % 2 === 0 ? [begin(), resize('10Gi')] : [resize('10Gi'), begin()]
      const [began, lowered] = round % 2 === 0 ? await Promise.all(both) : (await Promise.all(both)).reverse()
      expect(lowered!.status).toBe(200)
      expect([200, 409]).toContain(began!.status)
      expect(await used()).toBe(began!.status === 200 ? '90Gi' : '10Gi')
      await api.delete(`${CLAIMS}/a`)
      await api.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    }
  })
})
