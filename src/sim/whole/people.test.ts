import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { internalError } from '../../api/status-error.ts'
import { createStoreView } from '../checkers/store-view.ts'
import { type Cluster, createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import { createWorld } from '../world.ts'
import { diceOf } from './dice.ts'
import { isNonsense, nonsenseOf } from './nonsense.ts'
import { createPeople } from './people.ts'
import type { Named, PeopleAct } from './plan.ts'
import { type DriverName, settingsOf } from './universe.ts'

const NAMESPACE = 'team-a'

async function peopleOf() {
  const world = createWorld(1)
  const cluster = await createCluster(world)
  const drivers = new Map<DriverName, SimDriver>([
    ['net.sim', createSimDriver(world, 'driver net.sim', settingsOf('net.sim', ['n1']))],
  ])
  const gates: string[] = []
  const processes = new Map([
    ['server', cluster.server],
    ['driver net.sim', drivers.get('net.sim')!.process],
    ['control-1', cluster.add('control-1', () => {})],
    ['agent-n1', cluster.add('agent-n1', () => {})],
  ])
  const stage = {
    cluster,
    drivers,
    processes,
    setGate: (gate: string, isOn: boolean) => void gates.push(`${gate} ${isOn}`),
  }
  const notes: string[] = []
  const people = createPeople({ stage, view: createStoreView(cluster), note: (line) => void notes.push(line) })
  const settled = async <T>(work: Promise<T>): Promise<T> => {
    let outcome: { value: T } | undefined
    work.then((value) => {
      outcome = { value }
    })
    await world.runUntil(() => outcome !== undefined, { withinMs: 60_000, waitingFor: 'an answer' })
    return outcome!.value
  }
  const perform = (act: PeopleAct) => settled(people.perform(act))
  await perform({ do: 'create', kind: 'namespace', object: { metadata: { name: NAMESPACE } } })
  return { world, cluster, drivers, processes, people, perform, settled, gates, notes }
}

const C0: Named = { namespace: NAMESPACE, name: 'c0' }
const claimText = (of: Named, storage = '4Gi') => ({
  metadata: { ...of },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'shelf', resources: { requests: { storage } } },
})
const createClaim = (of: Named, storage?: string): PeopleAct => ({
  do: 'create',
  kind: 'claim',
  object: claimText(of, storage),
})
const grow = (of: Named): PeopleAct => ({
  do: 'edit',
  kind: 'claim',
  of,
  patch: { spec: { resources: { requests: { storage: '9Gi' } } } },
  why: 'grow',
})
const patchStatus = (
  cluster: Cluster,
  kind: typeof persistentVolumeKind | typeof persistentVolumeClaimKind,
  of: Named,
  status: object,
) => cluster.direct()!.patch(kind as never, of, { type: 'merge', body: { status } }, { subresource: 'status' })

describe('people', () => {
  it('SYS-14 say in a word what the server answered', async () => {
    const { perform } = await peopleOf()
    expect(await perform(createClaim(C0))).toBe('done')
    expect(await perform(createClaim(C0))).toBe('exists')
    expect(await perform(grow(C0))).toBe('refused 422') // it is not bound
    expect(await perform(grow({ ...C0, name: 'c1' }))).toBe('not there')
    expect(await perform(createClaim({ namespace: 'nowhere', name: 'c0' }))).toBe('not there')
    const quota = { metadata: { ...C0, name: 'q0' }, spec: { hard: { persistentvolumeclaims: '1' } } }
    expect(await perform({ do: 'create', kind: 'quota', object: quota })).toBe('done')
    expect(await perform(createClaim({ ...C0, name: 'c1' }))).toBe('over quota')
    expect(await perform({ do: 'delete', kind: 'claim', of: { ...C0, name: 'c7' } })).toBe('not there')
    expect(await perform({ do: 'go back', of: { ...C0, name: 'c7' } })).toBe('not there')
  })

  it('SYS-14 keep what was acknowledged, and that it is gone', async () => {
    const { people, perform } = await peopleOf()
    await perform(createClaim(C0))
    await perform(createClaim(C0))
    await perform({ do: 'edit', kind: 'claim', of: C0, patch: { metadata: { labels: { a: 'b' } } }, why: 'label' })
    await perform({ do: 'create', kind: 'config map', object: { metadata: { ...C0, name: 'm0' } } })
    await perform({ do: 'delete', kind: 'config map', of: { ...C0, name: 'm0' } })
    await perform({ do: 'delete', kind: 'claim', of: C0 })
    const [, made, labelled, map, mapGone, going] = people.acknowledged
    expect(people.acknowledged).toHaveLength(6)
    expect(made).toMatchObject({ kind: 'claim', key: 'team-a/c0', gone: false })
    expect(labelled?.uid).toBe(made?.uid)
    expect(Number(labelled?.resourceVersion)).toBeGreaterThan(Number(made?.resourceVersion))
    expect(mapGone).toEqual({ ...map, atMs: mapGone?.atMs, gone: true })
    expect(going).toMatchObject({ uid: made?.uid, gone: false }) // its finalizer holds it
  })

  it('SYS-14 hear nothing from a server that is down, nor from one that dies over it', async () => {
    const { world, cluster, people, perform } = await peopleOf()
    const before = people.acknowledged.length
    let answer: string | undefined
    people.perform(createClaim(C0)).then((outcome) => {
      answer = outcome
    })
    cluster.server.crash()
    await world.runFor(60_000)
    expect(answer).toBeUndefined()
    expect(await perform(createClaim(C0))).toBe('no server')
    expect(people.acknowledged).toHaveLength(before)
  })

  it('SYS-14 tell a disk that refuses from a mistake of the server', async () => {
    const { cluster, perform, notes } = await peopleOf()
    cluster.disk.faults.refuse = 1
    expect(await perform(createClaim(C0))).toBe('disk refused')
    cluster.disk.faults.refuse = 0
    const client = cluster.direct()!
    client.create = () => Promise.reject(internalError('a mistake'))
    expect(await perform(createClaim(C0))).toMatch(/^BUG 500 .*a mistake/)
    client.create = () => Promise.reject(new TypeError('cannot read'))
    expect(await perform(createClaim(C0))).toBe('BUG TypeError: cannot read')
    expect(notes).toHaveLength(2)
  })

  it('SYS-14 are refused whatever nonsense they write, and notice when they are not', async () => {
    const { cluster, perform } = await peopleOf()
    const dice = diceOf(createWorld(3).dice('nonsense'))
    const told = new Set<string>()
    for (let nth = 0; nth < 60; nth++) {
      const act = nonsenseOf(dice, claimText(C0) as never)
      expect(isNonsense(act)).toBe(true)
      told.add(await perform(act))
    }
    expect([...told].sort()).toEqual(['not there', 'refused 400', 'refused 422'])
    await perform(createClaim(C0))
    for (let nth = 0; nth < 60; nth++)
      expect(await perform(nonsenseOf(dice, claimText(C0) as never))).toMatch(/refused|exists/)
    const client = cluster.direct()!
    const { create } = client
    client.create = (kind, _object, options) =>
      create(kind, { metadata: { namespace: NAMESPACE, name: 'm1' }, data: {} } as never, options)
    const act: PeopleAct = {
      do: 'create',
      kind: 'config map',
      object: { metadata: { name: 'm' }, colourOfStorage: 'red' },
    }
    expect(await perform(act)).toBe('BUG nonsense was stored')
  })

  it('SYS-14 bring storage into a driver, with a volume for it', async () => {
    const { cluster, drivers, perform, settled } = await peopleOf()
    const object = {
      metadata: { name: 's0' },
      spec: {
        capacity: { storage: '3Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'net.sim', volumeHandle: 'hand-1' },
      },
    }
    expect(await perform({ do: 'import', driver: 'net.sim', name: 'hand-1', object })).toBe('done')
    expect(drivers.get('net.sim')!.state().volumes['hand-1']?.capacityBytes).toBe(3 * 1024 ** 3)
    const volume = await settled(cluster.direct()!.get(persistentVolumeKind, { name: 's0' }))
    expect(volume.spec?.csi?.volumeHandle).toBe('hand-1')
  })

  it('SYS-14 find the volume of a claim, give back only what is released, reserve only what is free', async () => {
    const { cluster, perform, settled } = await peopleOf()
    const spec = {
      capacity: { storage: '3Gi' },
      accessModes: ['ReadWriteOnce'],
      claimRef: { ...C0, uid: 'u' },
      nfs: { server: 'filer', path: '/' },
    }
    const giveBack: PeopleAct = {
      do: 'edit',
      kind: 'volume',
      of: C0,
      patch: { spec: { claimRef: null } },
      why: 'give back',
    }
    expect(await perform(giveBack)).toBe('not there')
    await perform({ do: 'create', kind: 'volume', object: { metadata: { name: 'pvc-1' }, spec } })
    await settled(patchStatus(cluster, persistentVolumeKind, { name: 'pvc-1' }, { phase: 'Bound' }))
    expect(await perform(giveBack)).toBe('not there')
    const policy = { spec: { persistentVolumeReclaimPolicy: 'Delete' } }
    expect(await perform({ do: 'edit', kind: 'volume', of: C0, patch: policy, why: 'policy' })).toBe('done')
    await settled(patchStatus(cluster, persistentVolumeKind, { name: 'pvc-1' }, { phase: 'Released' }))
    expect(await perform(giveBack)).toBe('done')
    const volume = await settled(cluster.direct()!.get(persistentVolumeKind, { name: 'pvc-1' }))
    expect(volume.spec).toMatchObject(policy.spec)
    expect(volume.spec?.claimRef).toBeUndefined()
    const patch = { spec: { claimRef: { ...C0 } } }
    const reserve: PeopleAct = { do: 'edit', kind: 'volume', of: { name: 'pvc-1' }, patch, why: 'reserve' }
    expect([await perform(reserve), await perform(reserve)]).toEqual(['done', 'not there'])
    expect(await perform({ do: 'delete', kind: 'volume', of: { ...C0, name: 'c9' } })).toBe('not there')
    expect(await perform({ do: 'delete', kind: 'volume', of: { name: 'pvc-1' } })).toBe('done')
  })

  it('SYS-14 take a claim back to what it has', async () => {
    const { cluster, perform, settled } = await peopleOf()
    const wanted = {
      metadata: { ...C0 },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'shelf',
        volumeAttributesClassName: 'gold',
        resources: { requests: { storage: '9Gi', iops: '700', throughput: '10Mi' } },
      },
    }
    await perform({ do: 'create', kind: 'claim', object: wanted })
    const status = {
      phase: 'Bound',
      capacity: { storage: '4Gi', iops: '500' },
      currentVolumeAttributesClassName: 'silver',
    }
    await settled(patchStatus(cluster, persistentVolumeClaimKind, C0, status))
    expect(await perform({ do: 'go back', of: C0 })).toBe('done')
    const { spec } = await settled(cluster.direct()!.get(persistentVolumeClaimKind, C0))
    expect(spec?.resources?.requests).toEqual({ storage: '4Gi', iops: '500' })
    expect(spec?.volumeAttributesClassName).toBe('silver')
  })

  it('SYS-14 hold an object and let it go, and leave what others hold it for', async () => {
    const { cluster, perform, settled } = await peopleOf()
    await perform(createClaim(C0))
    const hold = { metadata: { finalizers: ['people.example/hold'] } }
    await perform({ do: 'edit', kind: 'claim', of: C0, patch: hold, why: 'hold' })
    const finalizers = async () =>
      (await settled(cluster.direct()!.get(persistentVolumeClaimKind, C0))).metadata.finalizers?.toSorted()
    expect(await finalizers()).toEqual(['kubernetes.io/pvc-protection', 'people.example/hold'])
    const letGo = { metadata: { '$deleteFromPrimitiveList/finalizers': ['people.example/hold'] } }
    await perform({ do: 'edit', kind: 'claim', of: C0, patch: letGo, why: 'let go' })
    expect(await finalizers()).toEqual(['kubernetes.io/pvc-protection'])
  })

  it('SYS-14 switch a gate by starting server and controllers anew, and nothing else', async () => {
    const { world, perform, processes, gates, cluster } = await peopleOf()
    expect(await perform({ do: 'switch gate', gate: 'VolumeProvisionedIO', isOn: false })).toBe('done')
    await world.runUntil(() => cluster.direct() !== undefined, { withinMs: 60_000, waitingFor: 'the server' })
    expect(gates).toEqual(['VolumeProvisionedIO false'])
    const starts = [...processes].map(([name, process]) => [name, process.starts])
    expect(Object.fromEntries(starts)).toEqual({ server: 2, 'control-1': 2, 'agent-n1': 1, 'driver net.sim': 1 })
    expect([...processes.values()].every(({ alive }) => alive)).toBe(true)
  })
})
