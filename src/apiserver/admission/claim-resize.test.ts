// Tests changes to a claim's size through the whole server: the rules of src/api/kinds/claim/claim-update-rules.ts
// together with the admission plugin.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { calculateUsage, formatAmounts } from '../../api/quota/index.ts'
import { memoryMedium } from '../../store/index.ts'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const QUOTAS = '/api/v1/namespaces/default/resourcequotas'

const NOT_EXPANDABLE =
  'persistentvolumeclaims "a" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'
const IMMUTABLE =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
const BELOW_CAPACITY = 'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'
const BELOW_PREVIOUS = 'spec.resources.requests.storage: Forbidden: field can not be less than previous value'

let api: ServerFixture
const start = async (options: Parameters<typeof createServerFixture>[0] = {}) => {
  api = await createServerFixture(options)
  await createClass('expandable', { allowVolumeExpansion: true })
}
beforeEach(() => start())
afterEach(() => api.store.close())

const createClass = (name: string, fields: object = {}) =>
  api.post(CLASSES, { metadata: { name }, provisioner: 'd.example.com', ...fields })
const storageRequest = (storage: string) => ({ resources: { requests: { storage } } })
const createClaim = async (size: string, spec: object = {}) => {
  const body = { accessModes: ['ReadWriteOnce'], storageClassName: 'expandable', ...storageRequest(size), ...spec }
  const response = await api.post(CLAIMS, { metadata: { name: 'a' }, spec: body })
  expect(response.status, response.text).toBe(201)
}
const setStatus = async (status: object) => {
  const response = await api.patch(`${CLAIMS}/a/status`, { status }, 'merge')
  expect(response.status, response.text).toBe(200)
  return response.json
}
/** A bound claim that requests `size`, with a volume of `capacity`. */
const createBoundClaim = async (size: string, { capacity = size, spec = {} as object } = {}) => {
  await createClaim(size, spec)
  await setStatus({ phase: 'Bound', capacity: { storage: capacity } })
}
const resize = (size: string) => api.patch(`${CLAIMS}/a`, { spec: storageRequest(size) }, 'merge')
const getClaim = async () => (await api.get(`${CLAIMS}/a`)).json
const expectRejected = async (size: string, code: number, expectedMessage: string) => {
  const previousClaim = await getClaim()
  const { status, json } = await resize(size)
  expect(status, json.message).toBe(code)
  expect(json.message).toContain(expectedMessage)
  expect(await getClaim()).toEqual(previousClaim)
}
const expectAccepted = async (size: string) => {
  const { status, json } = await resize(size)
  expect(status, json.message).toBe(200)
  return json.spec
}

describe('expanding a claim', () => {
  it('REX-1 is accepted if the claim is bound and its class allows expansion, and raises the high-water mark', async () => {
    await createBoundClaim('10Gi')
    expect(await expectAccepted('100Gi')).toMatchObject({
      ...storageRequest('100Gi'),
      allocatedResources: { storage: '100Gi' },
    })
  })

  it.each<[string, object, () => Promise<unknown>]>([
    ['does not set allowVolumeExpansion', { storageClassName: 'unset' }, () => createClass('unset')],
    [
      'has allowVolumeExpansion false',
      { storageClassName: 'disallowed' },
      () => createClass('disallowed', { allowVolumeExpansion: false }),
    ],
    ['does not exist', { storageClassName: 'missing' }, async () => {}],
    ['is "", which means none', { storageClassName: '' }, async () => {}],
  ])('REX-1 is rejected if the class %s', async (_description, spec, prepare) => {
    await prepare()
    await createBoundClaim('10Gi', { spec })
    await expectRejected('20Gi', 403, NOT_EXPANDABLE)
  })

  it('REX-1 is rejected together with a change of class, because the new class did not provision the volume', async () => {
    await createBoundClaim('10Gi', { spec: { storageClassName: null } })
    const spec = { ...storageRequest('20Gi'), storageClassName: 'expandable' }
    const { status, json } = await api.patch(`${CLAIMS}/a`, { spec }, 'merge')
    expect([status, json.message]).toEqual([403, NOT_EXPANDABLE])
  })

  it('REX-1 uses the class in the beta annotation if the claim has one', async () => {
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'expandable' }
    await api.post(CLAIMS, {
      metadata: { name: 'a', annotations },
      spec: { accessModes: ['ReadWriteOnce'], ...storageRequest('1Gi') },
    })
    await setStatus({ phase: 'Bound', capacity: { storage: '1Gi' } })
    await expectAccepted('2Gi')
  })

  it.each(['Pending', 'Lost'])(
    'REX-1 is rejected while the claim is %s, but an update with the same size is accepted',
    async (phase) => {
      await createClaim('10Gi')
      await setStatus({ phase })
      await expectRejected('20Gi', 422, IMMUTABLE)
      await expectAccepted('10Gi')
      await expectAccepted('10240Mi')
    },
  )

  it('REX-1 uses the current allowVolumeExpansion of the class', async () => {
    await createBoundClaim('10Gi')
    await api.patch(`${CLASSES}/expandable`, { allowVolumeExpansion: false }, 'merge')
    await expectRejected('20Gi', 403, NOT_EXPANDABLE)
    await api.patch(`${CLASSES}/expandable`, { allowVolumeExpansion: true }, 'merge')
    await expectAccepted('20Gi')
  })

  it("REX-1 compares the size with the previous request, not with the volume's capacity", async () => {
    await createBoundClaim('10Gi', { capacity: '100Gi' })
    await api.patch(`${CLASSES}/expandable`, { allowVolumeExpansion: false }, 'merge')
    await expectRejected('50Gi', 403, NOT_EXPANDABLE)
  })

  it('REX-4 is accepted and charged while the claim is being deleted; removing the claim releases the charge', async () => {
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
    await createBoundClaim('10Gi')
    const getUsedStorage = async () => (await api.get(`${QUOTAS}/q`)).json.status.used['requests.storage']
    expect((await api.delete(`${CLAIMS}/a`)).json.metadata.deletionTimestamp).toBeDefined()
    await expectAccepted('20Gi')
    expect(await getUsedStorage()).toBe('20Gi')
    await api.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    expect(await getUsedStorage()).toBe('0')
  })

  it.each([
    ['0', 'must be greater than zero'],
    ['-5Gi', 'must be greater than zero'],
  ])('SYS-10 is rejected with the size %s', async (size, expectedMessage) => {
    await createBoundClaim('10Gi')
    await expectRejected(size, 422, expectedMessage)
  })

  it.each(['lots', '10GB', '', '1e5000', '9'.repeat(300)])(
    'SYS-10 is rejected with the invalid quantity %j',
    async (size) => {
      await createBoundClaim('10Gi')
      const { status } = await resize(size)
      expect([400, 422]).toContain(status)
      expect((await getClaim()).spec).toMatchObject(storageRequest('10Gi'))
    },
  )

  it('SYS-10 to a size above the int64 maximum is rejected in decimal units, and capped in binary units', async () => {
    await createBoundClaim('10Gi')
    await expectRejected('1e30', 422, 'Invalid value: "1e30": must be at most 9223372036854775807')
    // As in Kubernetes, a quantity in binary units is capped at 63 bits.
    expect(await expectAccepted('9999Ei')).toMatchObject(storageRequest('9223372036854775807'))
  })

  it('REX-1 to a size with a fraction of a byte is accepted with a warning', async () => {
    await createBoundClaim('1Gi')
    const { status, headers } = await resize('2147483648500m')
    expect(status).toBe(200)
    expect(JSON.stringify(headers)).toContain('fractional byte value')
  })
})

describe('lowering a request', () => {
  it.each(['13Gi', '10Gi'])('REX-2 from 15Gi to %s is accepted if the volume has 10Gi', async (size) => {
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    expect(await expectAccepted(size)).toMatchObject({
      ...storageRequest(size),
      allocatedResources: { storage: '15Gi' },
    })
  })

  it.each(['3Gi', '10737418239', '9Gi'])('REX-2 to %s, below the capacity of the volume, is rejected', async (size) => {
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    await expectRejected(size, 422, BELOW_CAPACITY)
  })

  it('REX-2 does not require a class that allows expansion', async () => {
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    await api.delete(`${CLASSES}/expandable`)
    await expectAccepted('12Gi')
    await expectRejected('13Gi', 403, NOT_EXPANDABLE)
  })

  it('REX-2 is rejected while the claim is not bound', async () => {
    await createClaim('15Gi')
    await expectRejected('10Gi', 422, IMMUTABLE)
  })

  it('REX-2 is rejected with the errors of all fields in one response', async () => {
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    const { json } = await api.patch(
      `${CLAIMS}/a`,
      { spec: { ...storageRequest('5Gi'), volumeMode: 'Block' } },
      'merge',
    )
    expect(json.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      'spec',
      'spec.resources.requests.storage',
      'volumeMode',
    ])
  })

  it('SYS-4 returns 409 Conflict if the update is based on a stale version', async () => {
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    const staleClaim = await getClaim()
    await expectAccepted('20Gi')
    const { status } = await api.put(`${CLAIMS}/a`, {
      ...staleClaim,
      spec: { ...staleClaim.spec, ...storageRequest('12Gi') },
    })
    expect(status).toBe(409)
    expect((await getClaim()).spec).toMatchObject(storageRequest('20Gi'))
  })
})

describe('the high-water mark of a claim', () => {
  const getHighWaterMark = async () => (await getClaim()).spec.allocatedResources

  it('REX-3 cannot be changed or removed by a patch, an update or an apply', async () => {
    await createBoundClaim('10Gi')
    const allocatedResources = { storage: '1Gi' }

    const { metadata, ...claimFields } = await getClaim()
    const body = {
      metadata: { name: metadata.name },
      ...claimFields,
      spec: { ...claimFields.spec, allocatedResources },
    }
    const appliedClaim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'a' } }
    const writes: [string, () => Promise<{ status: number; text: string }>][] = [
      ['merge patch', () => api.patch(`${CLAIMS}/a`, { spec: { allocatedResources } }, 'merge')],
      ['merge patch with null', () => api.patch(`${CLAIMS}/a`, { spec: { allocatedResources: null } }, 'merge')],
      ['strategic merge patch', () => api.patch(`${CLAIMS}/a`, { spec: { allocatedResources: { $patch: 'delete' } } })],
      ['JSON patch', () => api.patch(`${CLAIMS}/a`, [{ op: 'remove', path: '/spec/allocatedResources' }], 'json')],
      ['put', () => api.put(`${CLAIMS}/a`, { ...body, metadata: { ...metadata, resourceVersion: undefined } })],
      ['put of status', () => api.put(`${CLAIMS}/a/status`, body)],
      [
        'apply',
        () =>
          api.call(
            'PATCH',
            `${CLAIMS}/a?fieldManager=me&force=true`,
            JSON.stringify({ ...appliedClaim, spec: { allocatedResources } }),
            { 'content-type': 'application/apply-patch+yaml' },
          ),
      ],
    ]
    for (const [description, write] of writes) {
      const { status, text } = await write()
      expect(status, `${description}: ${text}`).toBe(200)
      expect(await getHighWaterMark(), description).toEqual({ storage: '10Gi' })
    }
  })

  it('REX-3 REX-4 stays charged after the request is lowered and the server is restarted', async () => {
    await api.store.close()
    const medium = memoryMedium()
    await start({ medium })
    const getUsedStorage = async () => (await api.get(`${QUOTAS}/q`)).json.status.used['requests.storage']
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
    await createBoundClaim('10Gi')
    for (const size of ['90Gi', '20Gi', '10Gi', '50Gi', '10Gi']) await expectAccepted(size)
    expect(await getUsedStorage()).toBe('90Gi')
    await api.store.close()
    api = await createServerFixture({ medium })
    await expectRejected(
      '101Gi',
      403,
      'exceeded quota: q, requested: requests.storage=11Gi, used: requests.storage=90Gi',
    )
    await expectAccepted('100Gi')
    expect(await getUsedStorage()).toBe('100Gi')
  })
})

describe('with the RecoverVolumeExpansionFailure feature gate disabled', () => {
  const disabledGate = { gates: 'RecoverVolumeExpansionFailure=false' }

  it('REX-10 rejects a lower request and accepts a higher one', async () => {
    await api.store.close()
    await start(disabledGate)
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    await expectRejected('12Gi', 422, BELOW_PREVIOUS)
    expect((await expectAccepted('20Gi')).allocatedResources).toBeUndefined()
  })

  it('REX-10 accepts a lower request if the claim has a high-water mark, which stays charged', async () => {
    await api.store.close()
    const medium = memoryMedium()
    await start({ medium })
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
    await createBoundClaim('15Gi', { capacity: '10Gi' })
    await api.store.close()
    api = await createServerFixture({ ...disabledGate, medium })
    expect(await expectAccepted('12Gi')).toMatchObject({ allocatedResources: { storage: '15Gi' } })
    await expectRejected('9Gi', 422, BELOW_CAPACITY)
    expect(await expectAccepted('30Gi')).toMatchObject({ allocatedResources: { storage: '30Gi' } })
    expect(await expectAccepted('10Gi')).toMatchObject({ allocatedResources: { storage: '30Gi' } })
    expect((await api.get(`${QUOTAS}/q`)).json.status.used).toEqual({ 'requests.storage': '30Gi' })
  })

  it('REX-10 drops the expansion fields that a controller writes, unless the claim already has them', async () => {
    await api.store.close()
    const medium = memoryMedium()
    await start({ ...disabledGate, medium })
    await createBoundClaim('10Gi')
    const expansionStatus = {
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    }
    expect((await setStatus(expansionStatus)).status).toEqual({ phase: 'Bound', capacity: { storage: '10Gi' } })
    await api.store.close()
    api = await createServerFixture({ medium })
    await setStatus(expansionStatus)
    await api.store.close()
    api = await createServerFixture({ ...disabledGate, medium })
    const nextExpansionStatus = {
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      allocatedResources: { storage: '30Gi' },
    }
    expect((await setStatus(nextExpansionStatus)).status).toMatchObject(nextExpansionStatus)
    const invalidUpdate = await api.patch(`${CLAIMS}/a/status`, {
      status: { allocatedResourceStatuses: { storage: 'No' } },
    })
    expect(invalidUpdate.status, 'the existing fields are still validated').toBe(422)
  })
})

describe('the quota charge of a claim with --expansion-quota=actual', () => {
  const getUsedStorage = async () => (await api.get(`${QUOTAS}/q`)).json.status.used['requests.storage']
  const startWithActualQuota = async () => {
    await api.store.close()
    await start({ expansionQuota: 'actual' })
    await api.post(QUOTAS, { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '100Gi' } } })
  }

  it('PLUS-14 is released by the write that reports the size', async () => {
    await startWithActualQuota()
    await createBoundClaim('10Gi')
    await expectAccepted('90Gi')
    await setStatus({
      allocatedResources: { storage: '90Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    })
    await expectAccepted('20Gi')
    await setStatus({
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    })
    expect(await getUsedStorage()).toBe('90Gi')
    const updatedClaim = await setStatus({ capacity: { storage: '20Gi' }, allocatedResourceStatuses: null })
    expect(updatedClaim.spec.allocatedResources).toEqual({ storage: '20Gi' })
    expect(await getUsedStorage()).toBe('20Gi')
    const countedUsage = calculateUsage({ hard: { 'requests.storage': '100Gi' } }, ['requests.storage'], () => [
      updatedClaim,
    ])
    expect(formatAmounts(countedUsage), 'the recount does not depend on the flag').toEqual({
      'requests.storage': '20Gi',
    })
    await expectAccepted('100Gi')
    expect(await getUsedStorage()).toBe('100Gi')
  })

  it('PLUS-14 is not released by a dry run', async () => {
    await startWithActualQuota()
    await createBoundClaim('10Gi')
    await expectAccepted('90Gi')
    const { status, json } = await api.patch(`${CLAIMS}/a?dryRun=All`, { spec: storageRequest('10Gi') }, 'merge')
    expect([status, json.spec.allocatedResources]).toEqual([200, { storage: '10Gi' }])
    expect(await getUsedStorage()).toBe('90Gi')
  })

  it('PLUS-14 is consistent with the claim after an expansion and a lower request run concurrently', async () => {
    await startWithActualQuota()
    for (let round = 0; round < 20; round++) {
      await createBoundClaim('10Gi')
      await expectAccepted('90Gi')
      const { resourceVersion } = (await getClaim()).metadata
      const startExpansion = () =>
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
      const requests = round % 2 === 0 ? [startExpansion(), resize('10Gi')] : [resize('10Gi'), startExpansion()]
      const [expansionResponse, resizeResponse] =
        round % 2 === 0 ? await Promise.all(requests) : (await Promise.all(requests)).reverse()
      expect(resizeResponse!.status).toBe(200)
      expect([200, 409]).toContain(expansionResponse!.status)
      expect(await getUsedStorage()).toBe(expansionResponse!.status === 200 ? '90Gi' : '10Gi')
      await api.delete(`${CLAIMS}/a`)
      await api.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    }
  })
})
