// Tests the effect of disabled feature gates on new and stored objects, and the flag that sets the gates.
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { FEATURE_GATES, type FeatureGate, parseFeatureGates } from '../api/feature-gates.ts'
import { type Medium, memoryMedium } from '../store/index.ts'
import { createServerFixture, type Json, type ServerFixture } from './server.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const QUOTAS = '/api/v1/namespaces/default/resourcequotas'
const CAPACITIES = '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities'
const DRIVERS = '/apis/storage.k8s.io/v1/csidrivers'

let api: ServerFixture
let medium: Medium
afterEach(() => api.store.close()) // closing twice is harmless

const gatesDisabled = (...gates: FeatureGate[]) => gates.map((gate) => `${gate}=false`).join(',')

async function start(gates = ''): Promise<void> {
  medium = memoryMedium()
  api = await createServerFixture({ medium, gates })
}
async function restart(gates = ''): Promise<void> {
  await api.store.close()
  api = await createServerFixture({ medium, gates })
}

const aClaim = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
})
const aVolume = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    csi: { driver: 'd.example.com', volumeHandle: name },
    ...spec,
  },
})
const bind = (name: string, status: object = {}) =>
  api.patch(`${CLAIMS}/${name}/status`, { status: { phase: 'Bound', capacity: { storage: '1Gi' }, ...status } })
const patchClaim = (name: string, spec: object) => api.patch(`${CLAIMS}/${name}`, { spec }, 'merge')

const gateDisabledMessage = (gate: string) => `Forbidden: update is forbidden when the ${gate} feature gate is disabled`

describe('VolumeAttributesClass disabled', () => {
  it('VAC-12 rejects a change or removal of the class with the documented message; the claim keeps its class', async () => {
    await start()
    await api.post(CLAIMS, aClaim('test-pvc', { volumeAttributesClassName: 'silver' }))
    await bind('test-pvc', { currentVolumeAttributesClassName: 'silver' })
    await restart(gatesDisabled('VolumeAttributesClass'))
    const rejection = await patchClaim('test-pvc', { volumeAttributesClassName: 'gold' })
    expect([rejection.status, rejection.json.message]).toEqual([
      422,
      `PersistentVolumeClaim "test-pvc" is invalid: spec.volumeAttributesClassName: ${gateDisabledMessage('VolumeAttributesClass')}`,
    ])
    for (const emptyClass of [null, '']) {
      const { json } = await patchClaim('test-pvc', { volumeAttributesClassName: emptyClass })
      expect(json.message).toContain(`spec.volumeAttributesClassName: ${gateDisabledMessage('VolumeAttributesClass')}`)
    }
    const { spec, status } = (await api.get(`${CLAIMS}/test-pvc`)).json
    expect([spec.volumeAttributesClassName, status.currentVolumeAttributesClassName]).toEqual(['silver', 'silver'])
  })

  it('warns in an HTTP header about a class or amount that is dropped from a claim', async () => {
    await start(gatesDisabled('VolumeAttributesClass', 'VolumeProvisionedIO'))
    const spec = { volumeAttributesClassName: 'gold', resources: { requests: { storage: '1Gi', iops: '500' } } }
    const warning = (field: string, value: string, gate: string) =>
      `299 - "${field}: \\"${value}\\" was ignored, because the ${gate} feature gate is disabled"`
    const warnings = [
      warning('spec.volumeAttributesClassName', 'gold', 'VolumeAttributesClass'),
      warning('spec.resources.requests[iops]', '500', 'VolumeProvisionedIO'),
    ]
    const createResponse = await api.post(CLAIMS, aClaim('new', spec))
    expect([createResponse.status, createResponse.headers.warning]).toEqual([201, warnings])
    await bind('new')
    const patchResponse = await patchClaim('new', spec)
    expect([patchResponse.status, patchResponse.headers.warning]).toEqual([200, warnings])
    expect((await api.patch(`${CLAIMS}/new`, { metadata: { labels: { a: 'b' } } }, 'merge')).headers.warning).toBe(
      undefined,
    )
  })

  it("drops a claim's or volume's new class, and applies the rest of the update", async () => {
    await start(gatesDisabled('VolumeAttributesClass'))
    await api.post(CLAIMS, aClaim('plain'))
    await bind('plain')
    const { status, json } = await api.patch(
      `${CLAIMS}/plain`,
      { metadata: { labels: { a: 'b' } }, spec: { volumeAttributesClassName: 'gold' } },
      'merge',
    )
    expect([status, json.spec.volumeAttributesClassName, json.metadata.labels]).toEqual([200, undefined, { a: 'b' }])
    const createResponse = (await api.post(VOLUMES, aVolume('v', { volumeAttributesClassName: 'gold' }))).json
    expect(createResponse.spec.volumeAttributesClassName).toBeUndefined()
    const patchResponse = await api.patch(`${VOLUMES}/v`, { spec: { volumeAttributesClassName: 'gold' } }, 'merge')
    expect([patchResponse.status, patchResponse.json.spec.volumeAttributesClassName]).toEqual([200, undefined])
  })

  it('VAC-12 keeps the class of a volume and rejects a change', async () => {
    await start()
    await api.post(VOLUMES, aVolume('v', { volumeAttributesClassName: 'silver' }))
    await restart(gatesDisabled('VolumeAttributesClass'))
    const labelResponse = await api.patch(`${VOLUMES}/v`, { metadata: { labels: { a: 'b' } } })
    expect(labelResponse.json.spec.volumeAttributesClassName).toBe('silver')
    const rejection = await api.patch(`${VOLUMES}/v`, { spec: { volumeAttributesClassName: 'gold' } }, 'merge')
    expect([rejection.status, rejection.json.message]).toEqual([
      422,
      `PersistentVolume "v" is invalid: spec.volumeAttributesClassName: ${gateDisabledMessage('VolumeAttributesClass')}`,
    ])
  })

  it('drops new status fields of a claim, and allows changes to existing ones', async () => {
    await start()
    await api.post(CLAIMS, aClaim('busy', { volumeAttributesClassName: 'silver' }))
    await api.post(CLAIMS, aClaim('idle'))
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'silver', status: 'InProgress' }
    await bind('busy', { modifyVolumeStatus })
    await bind('idle')
    await restart(gatesDisabled('VolumeAttributesClass'))
    const idleStatus = (await bind('idle', { modifyVolumeStatus, currentVolumeAttributesClassName: 'silver' })).json
      .status
    expect([idleStatus.modifyVolumeStatus, idleStatus.currentVolumeAttributesClassName]).toEqual([undefined, undefined])
    expect((await bind('busy')).json.status.modifyVolumeStatus).toEqual(modifyVolumeStatus)
    const infeasible = { ...modifyVolumeStatus, status: 'Infeasible' }
    expect((await bind('busy', { modifyVolumeStatus: infeasible })).json.status.modifyVolumeStatus).toEqual(infeasible)
    expect((await bind('busy', { modifyVolumeStatus: null })).json.status.modifyVolumeStatus).toBeUndefined()
  })

  it('VAC-9 serves classes, and adds no finalizer to new ones', async () => {
    await start(gatesDisabled('VolumeAttributesClass'))
    const body = { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters: { iops: '1' } }
    const { status, json } = await api.post(CLASSES, body)
    expect([status, json.metadata.finalizers]).toEqual([201, undefined])
    await restart()
    expect((await api.post(CLASSES, { ...body, metadata: { name: 'gold' } })).json.metadata.finalizers).toEqual([
      'kubernetes.io/vac-protection',
    ])
  })

  it('VAC-12 accepts a change of class after the gate is enabled again', async () => {
    await start()
    await api.post(CLAIMS, aClaim('data', { volumeAttributesClassName: 'silver' }))
    await bind('data')
    await restart(gatesDisabled('VolumeAttributesClass'))
    expect((await patchClaim('data', { volumeAttributesClassName: 'gold' })).status).toBe(422)
    await restart()
    expect((await patchClaim('data', { volumeAttributesClassName: 'gold' })).json.spec.volumeAttributesClassName).toBe(
      'gold',
    )
  })
})

describe('VolumeProvisionedIO disabled', () => {
  const requests = { storage: '1Gi', iops: '500', throughput: '100' }

  it('keeps stored amounts and rejects their change', async () => {
    await start()
    await api.post(CLAIMS, aClaim('data', { resources: { requests } }))
    await bind('data')
    await restart(gatesDisabled('VolumeProvisionedIO'))
    for (const iops of ['600', '400', null]) {
      const rejection = await patchClaim('data', { resources: { requests: { iops } } })
      expect([rejection.status, rejection.json.message]).toEqual([
        422,
        `PersistentVolumeClaim "data" is invalid: spec.resources.requests.iops: ${gateDisabledMessage('VolumeProvisionedIO')}`,
      ])
    }
    expect((await patchClaim('data', { resources: { requests: { throughput: '100' } } })).status).toBe(200)
    const { json } = await api.get(`${CLAIMS}/data`)
    expect(json.spec.resources.requests).toEqual({ storage: '1Gi', iops: '500', throughput: '100Mi' })
    await restart()
    expect((await patchClaim('data', { resources: { requests: { iops: '600' } } })).status).toBe(200)
  })

  it('drops the amounts of a new claim, and amounts that are added to a bound claim', async () => {
    await start(gatesDisabled('VolumeProvisionedIO'))
    await api.post(CLAIMS, aClaim('plain', { resources: { requests, limits: { iops: '900' } } }))
    await bind('plain')
    const { status, json } = await patchClaim('plain', { resources: { requests: { iops: '600' } } })
    expect([status, json.spec.resources]).toEqual([200, { requests: { storage: '1Gi' } }])
  })

  it('keeps the amounts of an existing volume, and drops those of a new one', async () => {
    await start()
    const capacity = { storage: '1Gi', iops: '500' }
    await api.post(VOLUMES, aVolume('old', { capacity }))
    await restart(gatesDisabled('VolumeProvisionedIO'))
    expect((await api.patch(`${VOLUMES}/old`, { metadata: { labels: { a: 'b' } } })).json.spec.capacity).toEqual(
      capacity,
    )
    const createResponse = await api.post(VOLUMES, aVolume('new', { capacity }))
    expect([createResponse.status, createResponse.json.spec.capacity]).toEqual([201, { storage: '1Gi' }])
  })

  it('rejects a new quota of iops, and accepts a change of an existing one', async () => {
    await start()
    const aQuota = (name: string) => ({ metadata: { name }, spec: { hard: { 'limits.iops': '1000' } } })
    await api.post(QUOTAS, aQuota('old'))
    await restart(gatesDisabled('VolumeProvisionedIO'))
    const rejection = await api.post(QUOTAS, aQuota('new'))
    expect([rejection.status, rejection.json.message]).toEqual([
      422,
      expect.stringContaining('must be a standard resource for quota'),
    ])
    expect((await api.patch(`${QUOTAS}/old`, { spec: { hard: { 'limits.iops': '2000' } } }, 'merge')).status).toBe(200)
  })
})

describe('RecoverExpansionFailure disabled', () => {
  const NAMES = ['RecoverExpansionFailure', 'RecoverVolumeExpansionFailure']
  it.each(NAMES)(
    'REX-10 rejects a lower request if disabled as %s, unless the claim has a high-water mark',
    async (name) => {
      await start(`${name}=false`)
      await api.post(CLAIMS, aClaim('data', { resources: { requests: { storage: '10Gi' } } }))
      await bind('data')
      const lower = () => patchClaim('data', { resources: { requests: { storage: '5Gi' } } })
      expect((await lower()).json.message).toBe(
        'PersistentVolumeClaim "data" is invalid: spec.resources.requests.storage: Forbidden: ' +
          'field can not be less than previous value',
      )
      await restart(`${name}=true`)
      expect((await lower()).status).toBe(200)
      await restart(`${name}=false`)
      const lowerResponse = await patchClaim('data', { resources: { requests: { storage: '3Gi' } } })
      expect([lowerResponse.status, lowerResponse.json.spec?.allocatedResources]).toEqual([200, { storage: '10Gi' }]) // because the claim already has the field
    },
  )
})

describe('CSIStorageCapacity disabled', () => {
  it('CAP-18 still serves capacity objects and the storageCapacity field of drivers', async () => {
    await start()
    await api.post(DRIVERS, { metadata: { name: 'd.example.com' }, spec: { storageCapacity: true } })
    await api.post(CAPACITIES, { metadata: { name: 'c' }, storageClassName: 'fast', capacity: '1Gi' })
    await restart(gatesDisabled('CSIStorageCapacity'))
    expect((await api.get(`${DRIVERS}/d.example.com`)).json.spec.storageCapacity).toBe(true)
    expect((await api.get(`${CAPACITIES}/c`)).json.capacity).toBe('1Gi')
    const createResponse = await api.post(DRIVERS, {
      metadata: { name: 'e.example.com' },
      spec: { storageCapacity: true },
    })
    expect(createResponse.json.spec.storageCapacity).toBe(true)
  })
})

describe('any combination of gates', () => {
  const aFullClaim = (name: string) =>
    aClaim(name, {
      volumeAttributesClassName: 'silver',
      resources: { requests: { storage: '1Gi', iops: '500', throughput: '100' } },
    })
  const anyGateSetting = fc
    .subarray([...FEATURE_GATES])
    .map((gates) => ({ text: gatesDisabled(...gates), has: (gate: FeatureGate) => !gates.includes(gate) }))

  it('stores the fields that the gates allow in a new claim, and keeps them under every later combination', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyGateSetting, { minLength: 2, maxLength: 5 }), async (history) => {
        medium = memoryMedium()
        const storedSpecs = new Map<string, Json>()
        for (const [round, gates] of history.entries()) {
          api = await createServerFixture({ medium, gates: gates.text })
          for (const [name, spec] of storedSpecs) {
            expect((await api.get(`${CLAIMS}/${name}`)).json.spec).toEqual(spec)
            const labelResponse = await api.patch(`${CLAIMS}/${name}`, { metadata: { labels: { turn: `${round}` } } })
            const putResponse = await api.put(`${CLAIMS}/${name}`, (await api.get(`${CLAIMS}/${name}`)).json)
            // A gate that is enabled later may add only the high-water mark, which the quota charges anyway.
            if (gates.has('RecoverExpansionFailure')) spec.allocatedResources = { storage: '1Gi' }
            expect(labelResponse.json.spec).toEqual(spec)
            expect([putResponse.status, putResponse.json.spec]).toEqual([200, spec])
          }
          const { spec } = (await api.post(CLAIMS, aFullClaim(`turn-${round}`))).json
          expect(spec.volumeAttributesClassName).toBe(gates.has('VolumeAttributesClass') ? 'silver' : undefined)
          expect(spec.resources.requests.iops).toBe(gates.has('VolumeProvisionedIO') ? '500' : undefined)
          expect(spec.allocatedResources).toEqual(gates.has('RecoverExpansionFailure') ? { storage: '1Gi' } : undefined)
          storedSpecs.set(`turn-${round}`, spec)
          await api.store.close()
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('--feature-gates', () => {
  it('accepts every gate and alias, and applies the last setting of a gate', () => {
    for (const gate of FEATURE_GATES) {
      expect(parseFeatureGates(`${gate}=false`).enabled(gate)).toBe(false)
      expect(parseFeatureGates(`${gate}=false,${gate}=True`).enabled(gate)).toBe(true)
    }
    expect(parseFeatureGates('RecoverVolumeExpansionFailure=false').enabled('RecoverExpansionFailure')).toBe(false)
  })

  it.each([
    ['NoSuchGate=true', 'unknown feature gate "NoSuchGate"; known gates: VolumeAttributesClass'],
    ['VolumeAttributesClass', 'feature gate VolumeAttributesClass has value ""'],
    ['VolumeAttributesClass=maybe', 'write VolumeAttributesClass=true or VolumeAttributesClass=false'],
  ])('SYS-10 rejects %s', (text, message) => {
    expect(() => parseFeatureGates(text)).toThrow(message)
  })
})
