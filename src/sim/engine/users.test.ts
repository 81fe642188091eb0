import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { internalError } from '../../api/status-error.ts'
import { type Cluster, createCluster } from '../environment/cluster.ts'
import { createSimDriver, type SimDriver } from '../environment/driver.ts'
import { createSimulation } from '../environment/simulation.ts'
import { type DriverName, settingsOf } from '../plan/catalog.ts'
import type { Ref, UserAction } from '../plan/plan.ts'
import { generateInvalidAction, isInvalid } from '../workload/invalid-objects.ts'
import { createRng } from '../workload/rng.ts'
import { createUsers } from './users.ts'
import { createView } from './view.ts'

const NAMESPACE = 'team-a'

async function createFixture() {
  const simulation = createSimulation(1)
  const cluster = await createCluster(simulation)
  const drivers = new Map<DriverName, SimDriver>([
    ['net.sim', createSimDriver(simulation, 'driver net.sim', settingsOf('net.sim', ['n1']))],
  ])
  const gates: string[] = []
  const processes = new Map([
    ['server', cluster.server],
    ['driver net.sim', drivers.get('net.sim')!.process],
    ['control-1', cluster.add('control-1', () => {})],
    ['agent-n1', cluster.add('agent-n1', () => {})],
  ])
  const system = {
    cluster,
    drivers,
    processes,
    setGate: (gate: string, isOn: boolean) => void gates.push(`${gate} ${isOn}`),
  }
  const notes: string[] = []
  const users = createUsers({ system, view: createView(cluster), note: (line) => void notes.push(line) })
  const waitFor = async <T>(work: Promise<T>): Promise<T> => {
    let outcome: { value: T } | undefined
    work.then((value) => {
      outcome = { value }
    })
    await simulation.runUntil(() => outcome !== undefined, { withinMs: 60_000, waitingFor: 'an answer' })
    return outcome!.value
  }
  const perform = (action: UserAction) => waitFor(users.perform(action))
  await perform({ do: 'create', kind: 'namespace', object: { metadata: { name: NAMESPACE } } })
  return { simulation, cluster, drivers, processes, users, perform, waitFor, gates, notes }
}

const CLAIM: Ref = { namespace: NAMESPACE, name: 'c0' }
const claimManifest = (ref: Ref, storage = '4Gi') => ({
  metadata: { ...ref },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'static', resources: { requests: { storage } } },
})
const createClaim = (ref: Ref, storage?: string): UserAction => ({
  do: 'create',
  kind: 'claim',
  object: claimManifest(ref, storage),
})
const expand = (ref: Ref): UserAction => ({
  do: 'edit',
  kind: 'claim',
  ref,
  patch: { spec: { resources: { requests: { storage: '9Gi' } } } },
  purpose: 'grow',
})
const patchStatus = (
  cluster: Cluster,
  kind: typeof persistentVolumeKind | typeof persistentVolumeClaimKind,
  ref: Ref,
  status: object,
) => cluster.directClient()!.patch(kind as never, ref, { type: 'merge', body: { status } }, { subresource: 'status' })

describe('users', () => {
  it('summarize the response to each action', async () => {
    const { perform } = await createFixture()
    expect(await perform(createClaim(CLAIM))).toBe('done')
    expect(await perform(createClaim(CLAIM))).toBe('exists')
    expect(await perform(expand(CLAIM))).toBe('refused 422') // the claim is not bound
    expect(await perform(expand({ ...CLAIM, name: 'c1' }))).toBe('not there')
    expect(await perform(createClaim({ namespace: 'nowhere', name: 'c0' }))).toBe('not there')
    const quota = { metadata: { ...CLAIM, name: 'q0' }, spec: { hard: { persistentvolumeclaims: '1' } } }
    expect(await perform({ do: 'create', kind: 'quota', object: quota })).toBe('done')
    expect(await perform(createClaim({ ...CLAIM, name: 'c1' }))).toBe('over quota')
    expect(await perform({ do: 'delete', kind: 'claim', ref: { ...CLAIM, name: 'c7' } })).toBe('not there')
    expect(await perform({ do: 'revert', ref: { ...CLAIM, name: 'c7' } })).toBe('not there')
  })

  it('record acknowledged writes and deletions', async () => {
    const { users, perform } = await createFixture()
    await perform(createClaim(CLAIM))
    await perform(createClaim(CLAIM))
    await perform({
      do: 'edit',
      kind: 'claim',
      ref: CLAIM,
      patch: { metadata: { labels: { a: 'b' } } },
      purpose: 'label',
    })
    await perform({ do: 'create', kind: 'config map', object: { metadata: { ...CLAIM, name: 'm0' } } })
    await perform({ do: 'delete', kind: 'config map', ref: { ...CLAIM, name: 'm0' } })
    await perform({ do: 'delete', kind: 'claim', ref: CLAIM })
    const [, newClaim, labeledClaim, configMap, deletedConfigMap, deletedClaim] = users.acknowledgedWrites
    expect(users.acknowledgedWrites).toHaveLength(6)
    expect(newClaim).toMatchObject({ kind: 'claim', key: 'team-a/c0', isDeleted: false })
    expect(labeledClaim?.uid).toBe(newClaim?.uid)
    expect(Number(labeledClaim?.resourceVersion)).toBeGreaterThan(Number(newClaim?.resourceVersion))
    expect(deletedConfigMap).toEqual({ ...configMap, atMs: deletedConfigMap?.atMs, isDeleted: true })
    expect(deletedClaim).toMatchObject({ uid: newClaim?.uid, isDeleted: false }) // a finalizer delays the removal of the claim
  })

  it('receive no response if the server crashes during the request, and "no server" while it is down', async () => {
    const { simulation, cluster, users, perform } = await createFixture()
    const previousCount = users.acknowledgedWrites.length
    let answer: string | undefined
    users.perform(createClaim(CLAIM)).then((outcome) => {
      answer = outcome
    })
    cluster.server.crash()
    await simulation.runFor(60_000)
    expect(answer).toBeUndefined()
    expect(await perform(createClaim(CLAIM))).toBe('no server')
    expect(users.acknowledgedWrites).toHaveLength(previousCount)
  })

  it('report a disk fault as "disk refused" and any other server error as BUG', async () => {
    const { cluster, perform, notes } = await createFixture()
    cluster.disk.faults.refuse = 1
    expect(await perform(createClaim(CLAIM))).toBe('disk refused')
    cluster.disk.faults.refuse = 0
    const client = cluster.directClient()!
    client.create = () => Promise.reject(internalError('a mistake'))
    expect(await perform(createClaim(CLAIM))).toMatch(/^BUG 500 .*a mistake/)
    client.create = () => Promise.reject(new TypeError('cannot read'))
    expect(await perform(createClaim(CLAIM))).toBe('BUG TypeError: cannot read')
    expect(notes).toHaveLength(2)
  })

  it('expect invalid objects to be rejected, and report BUG if one is stored', async () => {
    const { cluster, perform } = await createFixture()
    const rng = createRng(createSimulation(3).random('invalid'))
    const outcomes = new Set<string>()
    for (let nth = 0; nth < 60; nth++) {
      const action = generateInvalidAction(rng, claimManifest(CLAIM) as never)
      expect(isInvalid(action)).toBe(true)
      outcomes.add(await perform(action))
    }
    expect([...outcomes].sort()).toEqual(['not there', 'refused 400', 'refused 422'])
    await perform(createClaim(CLAIM))
    for (let nth = 0; nth < 60; nth++)
      expect(await perform(generateInvalidAction(rng, claimManifest(CLAIM) as never))).toMatch(/refused|exists/)
    const client = cluster.directClient()!
    const { create } = client
    client.create = (kind, _object, options) =>
      create(kind, { metadata: { namespace: NAMESPACE, name: 'm1' }, data: {} } as never, options)
    const action: UserAction = {
      do: 'create',
      kind: 'config map',
      object: { metadata: { name: 'm' }, colourOfStorage: 'red' },
    }
    expect(await perform(action)).toBe('BUG an invalid object was stored')
  })

  it('import a volume into a driver and create its PersistentVolume', async () => {
    const { cluster, drivers, perform, waitFor } = await createFixture()
    const object = {
      metadata: { name: 's0' },
      spec: {
        capacity: { storage: '3Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'net.sim', volumeHandle: 'imported-1' },
      },
    }
    expect(await perform({ do: 'import', driver: 'net.sim', name: 'imported-1', object })).toBe('done')
    expect(drivers.get('net.sim')!.state().volumes['imported-1']?.capacityBytes).toBe(3 * 1024 ** 3)
    const volume = await waitFor(cluster.directClient()!.get(persistentVolumeKind, { name: 's0' }))
    expect(volume.spec?.csi?.volumeHandle).toBe('imported-1')
  })

  it("edit a claim's volume: release it only if it is Released, and reserve it only if it is free", async () => {
    const { cluster, perform, waitFor } = await createFixture()
    const spec = {
      capacity: { storage: '3Gi' },
      accessModes: ['ReadWriteOnce'],
      claimRef: { ...CLAIM, uid: 'u' },
      nfs: { server: 'filer', path: '/' },
    }
    const releaseVolume: UserAction = {
      do: 'edit',
      kind: 'volume',
      ref: CLAIM,
      patch: { spec: { claimRef: null } },
      purpose: 'release',
    }
    expect(await perform(releaseVolume)).toBe('not there')
    await perform({ do: 'create', kind: 'volume', object: { metadata: { name: 'pvc-1' }, spec } })
    await waitFor(patchStatus(cluster, persistentVolumeKind, { name: 'pvc-1' }, { phase: 'Bound' }))
    expect(await perform(releaseVolume)).toBe('not there')
    const policy = { spec: { persistentVolumeReclaimPolicy: 'Delete' } }
    expect(await perform({ do: 'edit', kind: 'volume', ref: CLAIM, patch: policy, purpose: 'policy' })).toBe('done')
    await waitFor(patchStatus(cluster, persistentVolumeKind, { name: 'pvc-1' }, { phase: 'Released' }))
    expect(await perform(releaseVolume)).toBe('done')
    const volume = await waitFor(cluster.directClient()!.get(persistentVolumeKind, { name: 'pvc-1' }))
    expect(volume.spec).toMatchObject(policy.spec)
    expect(volume.spec?.claimRef).toBeUndefined()
    const patch = { spec: { claimRef: { ...CLAIM } } }
    const reserve: UserAction = { do: 'edit', kind: 'volume', ref: { name: 'pvc-1' }, patch, purpose: 'reserve' }
    expect([await perform(reserve), await perform(reserve)]).toEqual(['done', 'not there'])
    expect(await perform({ do: 'delete', kind: 'volume', ref: { ...CLAIM, name: 'c9' } })).toBe('not there')
    expect(await perform({ do: 'delete', kind: 'volume', ref: { name: 'pvc-1' } })).toBe('done')
  })

  it('reset the spec of a claim to the values in its status', async () => {
    const { cluster, perform, waitFor } = await createFixture()
    const claim = {
      metadata: { ...CLAIM },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'static',
        volumeAttributesClassName: 'gold',
        resources: { requests: { storage: '9Gi', iops: '700', throughput: '10Mi' } },
      },
    }
    await perform({ do: 'create', kind: 'claim', object: claim })
    const status = {
      phase: 'Bound',
      capacity: { storage: '4Gi', iops: '500' },
      currentVolumeAttributesClassName: 'silver',
    }
    await waitFor(patchStatus(cluster, persistentVolumeClaimKind, CLAIM, status))
    expect(await perform({ do: 'revert', ref: CLAIM })).toBe('done')
    const { spec } = await waitFor(cluster.directClient()!.get(persistentVolumeClaimKind, CLAIM))
    expect(spec?.resources?.requests).toEqual({ storage: '4Gi', iops: '500' })
    expect(spec?.volumeAttributesClassName).toBe('silver')
  })

  it('add and remove a finalizer without changing the others', async () => {
    const { cluster, perform, waitFor } = await createFixture()
    await perform(createClaim(CLAIM))
    const hold = { metadata: { finalizers: ['sim.example/hold'] } }
    await perform({ do: 'edit', kind: 'claim', ref: CLAIM, patch: hold, purpose: 'hold' })
    const finalizers = async () =>
      (await waitFor(cluster.directClient()!.get(persistentVolumeClaimKind, CLAIM))).metadata.finalizers?.toSorted()
    expect(await finalizers()).toEqual(['kubernetes.io/pvc-protection', 'sim.example/hold'])
    const releaseHold = { metadata: { '$deleteFromPrimitiveList/finalizers': ['sim.example/hold'] } }
    await perform({ do: 'edit', kind: 'claim', ref: CLAIM, patch: releaseHold, purpose: 'release hold' })
    expect(await finalizers()).toEqual(['kubernetes.io/pvc-protection'])
  })

  it('set a gate by restarting only the server and the controllers', async () => {
    const { simulation, perform, processes, gates, cluster } = await createFixture()
    expect(await perform({ do: 'set gate', gate: 'VolumeProvisionedIO', isOn: false })).toBe('done')
    await simulation.runUntil(() => cluster.directClient() !== undefined, {
      withinMs: 60_000,
      waitingFor: 'the server',
    })
    expect(gates).toEqual(['VolumeProvisionedIO false'])
    const starts = [...processes].map(([name, process]) => [name, process.starts])
    expect(Object.fromEntries(starts)).toEqual({ server: 2, 'control-1': 2, 'agent-n1': 1, 'driver net.sim': 1 })
    expect([...processes.values()].every(({ alive }) => alive)).toBe(true)
  })
})
