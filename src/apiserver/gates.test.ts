// Feature gates in every combination, with servers restarted on the same store: which fields new objects may have, which
// stored objects keep, and which changes are rejected.
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

const off = (...gates: FeatureGate[]) => gates.map((gate) => `${gate}=false`).join(',')

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
const change = (name: string, spec: object) => api.patch(`${CLAIMS}/${name}`, { spec }, 'merge')

const IS_OFF = (gate: string) => `Forbidden: update is forbidden when the ${gate} feature gate is disabled`

describe('VolumeAttributesClass off', () => {
  it('VAC-12 rejects a change or removal of the class with the documented message; the claim keeps its class', async () => {
    await start()
    await api.post(CLAIMS, aClaim('test-pvc', { volumeAttributesClassName: 'silver' }))
    await bind('test-pvc', { currentVolumeAttributesClassName: 'silver' })
    await restart(off('VolumeAttributesClass'))
    const refused = await change('test-pvc', { volumeAttributesClassName: 'gold' })
    expect([refused.status, refused.json.message]).toEqual([
      422,
      `PersistentVolumeClaim "test-pvc" is invalid: spec.volumeAttributesClassName: ${IS_OFF('VolumeAttributesClass')}`,
    ])
    for (const none of [null, '']) {
      const { json } = await change('test-pvc', { volumeAttributesClassName: none })
      expect(json.message).toContain(`spec.volumeAttributesClassName: ${IS_OFF('VolumeAttributesClass')}`)
    }
    const { spec, status } = (await api.get(`${CLAIMS}/test-pvc`)).json
    expect([spec.volumeAttributesClassName, status.currentVolumeAttributesClassName]).toEqual(['silver', 'silver'])
  })

  it('VAC-12 drops a class that the claim or volume did not have, and applies the rest of the update', async () => {
    await start(off('VolumeAttributesClass'))
    await api.post(CLAIMS, aClaim('plain'))
    await bind('plain')
    const { status, json } = await api.patch(
      `${CLAIMS}/plain`,
      { metadata: { labels: { a: 'b' } }, spec: { volumeAttributesClassName: 'gold' } },
      'merge',
    )
    expect([status, json.spec.volumeAttributesClassName, json.metadata.labels]).toEqual([200, undefined, { a: 'b' }])
    const made = (await api.post(VOLUMES, aVolume('v', { volumeAttributesClassName: 'gold' }))).json
    expect(made.spec.volumeAttributesClassName).toBeUndefined()
    const given = await api.patch(`${VOLUMES}/v`, { spec: { volumeAttributesClassName: 'gold' } }, 'merge')
    expect([given.status, given.json.spec.volumeAttributesClassName]).toEqual([200, undefined])
  })

  it('VAC-12 keeps the class of a volume and rejects another', async () => {
    await start()
    await api.post(VOLUMES, aVolume('v', { volumeAttributesClassName: 'silver' }))
    await restart(off('VolumeAttributesClass'))
    const relabelled = await api.patch(`${VOLUMES}/v`, { metadata: { labels: { a: 'b' } } })
    expect(relabelled.json.spec.volumeAttributesClassName).toBe('silver')
    const refused = await api.patch(`${VOLUMES}/v`, { spec: { volumeAttributesClassName: 'gold' } }, 'merge')
    expect([refused.status, refused.json.message]).toEqual([
      422,
      `PersistentVolume "v" is invalid: spec.volumeAttributesClassName: ${IS_OFF('VolumeAttributesClass')}`,
    ])
  })

  it('VAC-12 drops status fields that the claim did not have, and lets existing ones change', async () => {
    await start()
    await api.post(CLAIMS, aClaim('busy', { volumeAttributesClassName: 'silver' }))
    await api.post(CLAIMS, aClaim('idle'))
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'silver', status: 'InProgress' }
    await bind('busy', { modifyVolumeStatus })
    await bind('idle')
    await restart(off('VolumeAttributesClass'))
    const idle = (await bind('idle', { modifyVolumeStatus, currentVolumeAttributesClassName: 'silver' })).json.status
    expect([idle.modifyVolumeStatus, idle.currentVolumeAttributesClassName]).toEqual([undefined, undefined])
    expect((await bind('busy')).json.status.modifyVolumeStatus).toEqual(modifyVolumeStatus)
    expect((await bind('busy', { modifyVolumeStatus: null })).json.status.modifyVolumeStatus).toBeUndefined()
  })

  it('VAC-9 serves classes, and adds no finalizer to new ones', async () => {
    await start(off('VolumeAttributesClass'))
    const body = { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters: { iops: '1' } }
    const { status, json } = await api.post(CLASSES, body)
    expect([status, json.metadata.finalizers]).toEqual([201, undefined])
    await restart()
    expect((await api.post(CLASSES, { ...body, metadata: { name: 'gold' } })).json.metadata.finalizers).toEqual([
      'kubernetes.io/vac-protection',
    ])
  })

  it('VAC-12 accepts a change of class once the gate is on again', async () => {
    await start()
    await api.post(CLAIMS, aClaim('data', { volumeAttributesClassName: 'silver' }))
    await bind('data')
    await restart(off('VolumeAttributesClass'))
    expect((await change('data', { volumeAttributesClassName: 'gold' })).status).toBe(422)
    await restart()
    expect((await change('data', { volumeAttributesClassName: 'gold' })).json.spec.volumeAttributesClassName).toBe(
      'gold',
    )
  })
})

describe('VolumeProvisionedIO off', () => {
  const requests = { storage: '1Gi', iops: '500', throughput: '100' }

  it('PIO-1 keeps stored amounts and rejects any change of them', async () => {
    await start()
    await api.post(CLAIMS, aClaim('data', { resources: { requests } }))
    await bind('data')
    await restart(off('VolumeProvisionedIO'))
    for (const iops of ['600', '400', null]) {
      const refused = await change('data', { resources: { requests: { iops } } })
      expect([refused.status, refused.json.message]).toEqual([
        422,
        `PersistentVolumeClaim "data" is invalid: spec.resources.requests.iops: ${IS_OFF('VolumeProvisionedIO')}`,
      ])
    }
    expect((await change('data', { resources: { requests: { throughput: '100' } } })).status).toBe(200)
    const { json } = await api.get(`${CLAIMS}/data`)
    expect(json.spec.resources.requests).toEqual({ storage: '1Gi', iops: '500', throughput: '100Mi' })
    await restart()
    expect((await change('data', { resources: { requests: { iops: '600' } } })).status).toBe(200)
  })

  it('PIO-1 drops amounts that a bound claim did not have', async () => {
    await start(off('VolumeProvisionedIO'))
    await api.post(CLAIMS, aClaim('plain', { resources: { requests, limits: { iops: '900' } } }))
    await bind('plain')
    const { status, json } = await change('plain', { resources: { requests: { iops: '600' } } })
    expect([status, json.spec.resources]).toEqual([200, { requests: { storage: '1Gi' } }])
  })

  it('PIO-4 keeps the amounts of an existing volume, and drops those of a new one', async () => {
    await start()
    const capacity = { storage: '1Gi', iops: '500' }
    await api.post(VOLUMES, aVolume('old', { capacity }))
    await restart(off('VolumeProvisionedIO'))
    expect((await api.patch(`${VOLUMES}/old`, { metadata: { labels: { a: 'b' } } })).json.spec.capacity).toEqual(
      capacity,
    )
    const made = await api.post(VOLUMES, aVolume('new', { capacity }))
    expect([made.status, made.json.spec.capacity]).toEqual([201, { storage: '1Gi' }])
  })

  it('PIO-7 rejects new quotas of iops and throughput, and enforces existing ones', async () => {
    await start()
    const aQuota = (name: string) => ({ metadata: { name }, spec: { hard: { 'limits.iops': '1000' } } })
    await api.post(QUOTAS, aQuota('old'))
    await restart(off('VolumeProvisionedIO'))
    const refused = await api.post(QUOTAS, aQuota('new'))
    expect([refused.status, refused.json.message]).toEqual([
      422,
      expect.stringContaining('must be a standard resource for quota'),
    ])
    expect((await api.patch(`${QUOTAS}/old`, { spec: { hard: { 'limits.iops': '2000' } } }, 'merge')).status).toBe(200)
  })
})

describe('RecoverExpansionFailure off, by either of its names', () => {
  it.each(['RecoverExpansionFailure', 'RecoverVolumeExpansionFailure'])('REX-10 %s', async (name) => {
    await start(`${name}=false`)
    await api.post(CLAIMS, aClaim('data', { resources: { requests: { storage: '10Gi' } } }))
    await bind('data')
    const lower = () => change('data', { resources: { requests: { storage: '5Gi' } } })
    expect((await lower()).json.message).toBe(
      'PersistentVolumeClaim "data" is invalid: spec.resources.requests.storage: Forbidden: ' +
        'field can not be less than previous value',
    )
    await restart(`${name}=true`)
    expect((await lower()).status).toBe(200)
    await restart(`${name}=false`)
    const again = await change('data', { resources: { requests: { storage: '3Gi' } } })
    expect([again.status, again.json.spec?.allocatedResources]).toEqual([200, { storage: '10Gi' }]) // the claim has the field already
  })
})

describe('CSIStorageCapacity off', () => {
  it('CAP-1 serves capacity objects and the driver’s flag, which only the scheduler ignores', async () => {
    await start()
    await api.post(DRIVERS, { metadata: { name: 'd.example.com' }, spec: { storageCapacity: true } })
    await api.post(CAPACITIES, { metadata: { name: 'c' }, storageClassName: 'fast', capacity: '1Gi' })
    await restart(off('CSIStorageCapacity'))
    expect((await api.get(`${DRIVERS}/d.example.com`)).json.spec.storageCapacity).toBe(true)
    expect((await api.get(`${CAPACITIES}/c`)).json.capacity).toBe('1Gi')
    const made = await api.post(DRIVERS, { metadata: { name: 'e.example.com' }, spec: { storageCapacity: true } })
    expect(made.json.spec.storageCapacity).toBe(true)
  })
})

describe('any combination of gates', () => {
  const rich = (name: string) =>
    aClaim(name, {
      volumeAttributesClassName: 'silver',
      resources: { requests: { storage: '1Gi', iops: '500', throughput: '100' } },
    })
  const anyGates = fc
    .subarray([...FEATURE_GATES])
    .map((gates) => ({ text: off(...gates), has: (gate: FeatureGate) => !gates.includes(gate) }))

  it('VAC-12 PIO-1 REX-10 stores the fields that the gates allow in a new claim, and keeps them under every later combination', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyGates, { minLength: 2, maxLength: 5 }), async (history) => {
        medium = memoryMedium()
        const written = new Map<string, Json>()
        for (const [turn, gates] of history.entries()) {
          api = await createServerFixture({ medium, gates: gates.text })
          for (const [name, spec] of written) {
            expect((await api.get(`${CLAIMS}/${name}`)).json.spec).toEqual(spec)
            const touched = await api.patch(`${CLAIMS}/${name}`, { metadata: { labels: { turn: `${turn}` } } })
            const put = await api.put(`${CLAIMS}/${name}`, (await api.get(`${CLAIMS}/${name}`)).json)
            // A gate that is enabled later may add only the high-water mark, which the quota charges anyway.
            if (gates.has('RecoverExpansionFailure')) spec.allocatedResources = { storage: '1Gi' }
            expect(touched.json.spec).toEqual(spec)
            expect([put.status, put.json.spec]).toEqual([200, spec])
          }
          const { spec } = (await api.post(CLAIMS, rich(`turn-${turn}`))).json
          expect(spec.volumeAttributesClassName).toBe(gates.has('VolumeAttributesClass') ? 'silver' : undefined)
          expect(spec.resources.requests.iops).toBe(gates.has('VolumeProvisionedIO') ? '500' : undefined)
          expect(spec.allocatedResources).toEqual(gates.has('RecoverExpansionFailure') ? { storage: '1Gi' } : undefined)
          written.set(`turn-${turn}`, spec)
          await api.store.close()
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('--feature-gates', () => {
  it('knows every gate and its alias; the last setting applies', () => {
    for (const gate of FEATURE_GATES) {
      expect(parseFeatureGates(`${gate}=false`).enabled(gate)).toBe(false)
      expect(parseFeatureGates(`${gate}=false,${gate}=True`).enabled(gate)).toBe(true)
    }
    expect(parseFeatureGates('RecoverVolumeExpansionFailure=false').enabled('RecoverExpansionFailure')).toBe(false)
  })

  it.each([
    ['Unheard=true', 'unknown feature gate "Unheard"; known gates: VolumeAttributesClass'],
    ['VolumeAttributesClass', 'feature gate VolumeAttributesClass has value ""'],
    ['VolumeAttributesClass=maybe', 'write VolumeAttributesClass=true or VolumeAttributesClass=false'],
  ])('SYS-10 rejects %s', (text, words) => {
    expect(() => parseFeatureGates(text)).toThrow(words)
  })
})
