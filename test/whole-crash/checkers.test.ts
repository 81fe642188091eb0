// Tests that the checkers of the crash test report violations.
import { describe, expect, it } from 'vitest'
import type { Cluster } from './cluster.ts'
import { createJournal } from './journal.ts'
import { findProblems, type RecordedPast, type RestingState } from './problems-at-rest.ts'
import { replay } from './replay-history.ts'
import type { DriverVolume } from './storage.ts'
import type { Collection, RecordedEvent } from './watch-recorder.ts'

const MI = 1024 ** 2
let revision = 0
const anEvent = (collection: Collection, type: RecordedEvent['type'], object: any): RecordedEvent => {
  revision++
  return {
    collection,
    type,
    revision,
    object: { ...object, metadata: { ...object.metadata, resourceVersion: `${revision}` } },
  }
}

const aClaim = (name: string, overrides: { spec?: object; status?: object; metadata?: object } = {}) => ({
  metadata: { namespace: 'shop', name, uid: `uid-${name}`, ...overrides.metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'now',
    volumeMode: 'Filesystem',
    volumeName: `pv-${name}`,
    resources: { requests: { storage: '300Mi' } },
    ...overrides.spec,
  },
  status: { phase: 'Bound', capacity: { storage: '300Mi' }, ...overrides.status },
})
const aVolume = (claim: string, overrides: { spec?: object; metadata?: object; status?: object } = {}) => ({
  metadata: { name: `pv-${claim}`, uid: `uid-pv-${claim}`, ...overrides.metadata },
  spec: {
    capacity: { storage: '300Mi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'now',
    persistentVolumeReclaimPolicy: 'Delete',
    csi: { driver: 'local.csi.stowage.dev', volumeHandle: `vol-${claim}` },
    claimRef: { namespace: 'shop', name: claim, uid: `uid-${claim}` },
    ...overrides.spec,
  },
  status: { phase: 'Bound', ...overrides.status },
})
const aQuota = (hard: number, used: number) => ({
  metadata: { namespace: 'shop', name: 'main', uid: 'uid-main' },
  spec: { hard: { persistentvolumeclaims: `${hard}` } },
  status: { used: { persistentvolumeclaims: `${used}` } },
})
const driverVolumeOf = (claim: string, overrides: Partial<DriverVolume> = {}): [string, DriverVolume] => [
  `vol-${claim}`,
  {
    id: `vol-${claim}`,
    name: `pv-${claim}`,
    node: 'left',
    state: 'ready',
    capacityBytes: 300 * MI,
    fileBytes: 300 * MI,
    limits: {},
    ...overrides,
  },
]

describe('replay and journal', () => {
  const violationsIn = (...history: RecordedEvent[]) => replay(history, new Set()).violations

  it('reports a volume bound twice, a size that decreases and an exceeded quota', () => {
    expect(
      violationsIn(
        anEvent('volumes', 'ADDED', aVolume('a')),
        anEvent('claims', 'ADDED', aClaim('a')),
        anEvent('claims', 'ADDED', aClaim('b', { spec: { volumeName: 'pv-a' } })),
        anEvent('claims', 'MODIFIED', aClaim('a', { status: { capacity: { storage: '200Mi' } } })),
        anEvent('volumes', 'MODIFIED', aVolume('a', { spec: { capacity: { storage: '200Mi' } } })),
        anEvent('quotas', 'ADDED', aQuota(2, 2)),
        anEvent('quotas', 'MODIFIED', aQuota(1, 2)),
        anEvent('quotas', 'MODIFIED', aQuota(1, 3)),
      ),
    ).toEqual([
      'volume pv-a is bound to the claims shop/a and shop/b',
      'claim shop/b became bound to volume pv-a, which belongs to shop/a (uid-a)',
      'the capacity of claim shop/a decreased to 200Mi',
      'the capacity of volume pv-a decreased to 200Mi',
      'quota shop/main was exceeded: persistentvolumeclaims 3 of 1',
    ])
  })

  it('reports every acknowledged write that the history lacks', async () => {
    const existingEvent = anEvent('claims', 'ADDED', aClaim('existing'))
    const responses = [
      existingEvent.object,
      { ...existingEvent.object, spec: { volumeName: 'other' } },
      anEvent('claims', 'ADDED', aClaim('lost')).object,
    ]
    const call = async () => ({ status: 200, json: responses.shift() })
    const journal = createJournal({ server: () => ({ call }) } as unknown as Cluster)
    for (const action of ['create', 'edit', 'create']) await journal.request(action, 'POST', '')
    responses.push(existingEvent.object)
    await journal.request('delete', 'DELETE', '')
    expect(journal.findLostWrites([existingEvent])).toEqual([
      `edit existing at ${existingEvent.revision} was acknowledged, but is missing from the history`,
      `create lost at ${existingEvent.revision + 1} was acknowledged, but is missing from the history`,
      'delete existing: its deletion was lost',
    ])
    expect(journal.findLostWrites([existingEvent, anEvent('claims', 'DELETED', aClaim('existing'))])).toHaveLength(2)
  })
})

describe('findProblems', () => {
  const EMPTY_STATE: RestingState = {
    ...{ pods: [], claims: [], volumes: [], quotas: [], configMaps: [], nodes: [], namespaces: [], drivers: [] },
    ...{
      attributes: ['gold', 'odd'].map((name) => ({ metadata: { name } })),
      events: [],
      podDirs: [],
      attachedVolumeIds: [],
    },
    classes: [{ metadata: { name: 'now' }, provisioner: 'local.csi.stowage.dev', volumeBindingMode: 'Immediate' }],
    driverVolumes: new Map(),
  }
  const past: RecordedPast = { ...replay([], new Set()), importedNames: new Set() }
  const problemsOfState = (state: Partial<RestingState>) => findProblems({ ...EMPTY_STATE, ...state }, past)
  const problemsOfBoundClaim = (overrides: Parameters<typeof aClaim>[1], driverVolume: Partial<DriverVolume> = {}) =>
    problemsOfState({
      claims: [aClaim('a', overrides)],
      volumes: [aVolume('a')],
      driverVolumes: new Map([driverVolumeOf('a', driverVolume)]),
    })

  it('reports nothing for a claim whose request is satisfied', () => {
    expect(problemsOfBoundClaim({})).toEqual([])
    expect(
      problemsOfBoundClaim(
        { spec: { volumeAttributesClassName: 'gold' }, status: { currentVolumeAttributesClassName: 'gold' } },
        { limits: { iops: 1_000, throughputBytes: 100 * MI } },
      ),
    ).toEqual([])
  })

  it('reports leaked storage, volumes without storage, and leftovers of pods on nodes', () => {
    expect(
      problemsOfState({
        driverVolumes: new Map([driverVolumeOf('a')]),
        podDirs: ['uid-p'],
        attachedVolumeIds: ['vol-a'],
      }),
    ).toEqual([
      'driver vol-a (pv-a) leaked: it has no PersistentVolume',
      'a node has a directory of pod uid-p, which does not exist',
      'vol-a has a loop device, but no pod uses it',
    ])
    expect(problemsOfState({ claims: [aClaim('a')], volumes: [aVolume('a')] })).toEqual([
      'volume pv-a has the storage driver vol-a, which does not exist',
      'shop/a has a volume that its driver does not have',
    ])
  })

  it('reports sizes and attributes that differ from the claim', () => {
    expect(problemsOfBoundClaim({}, { capacityBytes: 200 * MI })).toEqual([
      `shop/a reports ${300 * MI}, but its device has ${200 * MI}`,
      `the volume of shop/a reports 300Mi, but its device has ${200 * MI}`,
    ])
    expect(problemsOfBoundClaim({ spec: { resources: { requests: { storage: '400Mi' } } } })).toEqual([
      `shop/a requests ${400 * MI} and has ${300 * MI} (undefined)`,
    ])
    expect(problemsOfBoundClaim({ spec: { volumeAttributesClassName: 'gold' } })).toEqual([
      'shop/a requests attributes gold and has undefined (undefined)',
    ])
    const goldClaim = { status: { currentVolumeAttributesClassName: 'gold' } }
    expect(problemsOfBoundClaim(goldClaim, { limits: { iops: 500, throughputBytes: 100 * MI } })).toEqual([
      'shop/a reports iops 1000, but its driver has 500',
    ])
    const goldStatus = { currentVolumeAttributesClassName: 'gold', modifyVolumeStatus: { status: 'Infeasible' } }
    const gold = { limits: { iops: 1000, throughputBytes: 100 * MI } }
    const requestIops = (iops: string) => ({
      spec: { resources: { requests: { storage: '300Mi', iops } } },
      status: goldStatus,
    })
    expect(problemsOfBoundClaim(requestIops('800'), gold)).toEqual([]) // the claim contradicts its current class and reports that
    expect(problemsOfBoundClaim(requestIops('1000'), gold)).toContain('shop/a is still Infeasible about undefined')
    expect(problemsOfBoundClaim({ spec: { volumeAttributesClassName: 'odd' } })).toEqual([
      'shop/a does not report that the driver rejects its attributes',
    ])
  })

  it('reports wrong quota usage, and pending claims and pods without a reason', () => {
    expect(problemsOfState({ quotas: [aQuota(5, 1)] })).toEqual([
      'shop: quota main reports persistentvolumeclaims=1, but the objects add up to 0',
    ])
    const pendingClaim = aClaim('a', {
      spec: { storageClassName: 'nowhere', volumeName: undefined },
      status: { phase: 'Pending' },
    })
    expect(problemsOfState({ claims: [pendingClaim] })).toEqual(['shop/a is Pending without an event with the reason'])
    const pod = {
      metadata: { namespace: 'shop', name: 'p', uid: 'uid-p' },
      spec: { volumes: [] },
      status: { phase: 'Pending' },
    }
    expect(problemsOfState({ pods: [pod] })).toEqual(['pod shop/p could run, but is Pending: '])
  })
})
