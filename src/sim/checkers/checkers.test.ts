// The checkers, shown the crimes they are there for. A checker that never convicts proves nothing.
import { describe, expect, it } from 'vitest'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { EXTERNAL_PROVISIONER_FINALIZER } from '../../volumes/names.ts'
import { createSimDriver } from '../driver.ts'
import { premadeVolume } from '../premade-volume.ts'
import { createWorld } from '../world.ts'
import { followAbandoned } from './abandoned.ts'
import { driverAsset } from './assets.ts'
import { checkBindings } from './bindings.ts'
import { createCourt } from './conviction.ts'
import { checkDeletions } from './deletions.ts'
import { problemsOf } from './quiet.ts'
import type { Change, Claim, StoreView, Volume } from './store-view.ts'

/** A store in which a commit is what the test says. */
function aStore() {
  const claims = new Map<string, Claim>()
  const volumes = new Map<string, Volume>()
  const claimNames = new Map<string, string>()
  const checks: ((changes: readonly Change[]) => void)[] = []
  const view: StoreView = { claims, volumes, claimNames, changedMs: 0, onCommit: (check) => void checks.push(check) }
  const commit = (change: Change) => {
    for (const check of checks) check([change])
  }
  return {
    view,
    claim(next: Claim): void {
      const key = `default/${next.metadata.name}`
      const old = claims.get(key)
      claims.set(key, next)
      claimNames.set(next.metadata.uid!, key)
      commit({ of: 'claim', old, next })
    },
    volume(name: string, next: Volume | undefined): void {
      const old = volumes.get(name)
      if (next) volumes.set(name, next)
      else volumes.delete(name)
      commit({ of: 'volume', old, next })
    },
  }
}

const aClaim = (name: string, more: { phase?: string; volumeName?: string; className?: string } = {}) =>
  ({
    metadata: { namespace: 'default', name, uid: `uid-${name}` },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: more.className ?? 'shelf',
      ...(more.volumeName ? { volumeName: more.volumeName } : {}),
    },
    status: { phase: more.phase ?? 'Pending' },
  }) as Claim

interface VolumeParts {
  phase?: string
  claim?: string
  policy?: string
  metadata?: object
  handle?: string
}

const aVolume = (name: string, { phase = 'Available', claim, policy = 'Delete', metadata, handle }: VolumeParts = {}) =>
  ({
    metadata: { name, uid: `uid-${name}`, ...metadata },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'shelf',
      persistentVolumeReclaimPolicy: policy,
      csi: { driver: 'd', volumeHandle: handle ?? name },
      ...(claim ? { claimRef: { namespace: 'default', name: claim, uid: `uid-${claim}` } } : {}),
    },
    status: { phase },
  }) as Volume

describe('the checker of bindings', () => {
  function aTrial() {
    const store = aStore()
    const crimes: string[] = []
    checkBindings(store.view, (crime) => void crimes.push(crime))
    store.volume('pv', aVolume('pv', { phase: 'Bound', claim: 'a' }))
    store.claim(aClaim('a', { phase: 'Bound', volumeName: 'pv' }))
    return { store, crimes }
  }

  it('PROV-5 finds nothing wrong with a claim that is bound to its own volume', () => {
    expect(aTrial().crimes).toEqual([])
  })

  it('PROV-5 convicts whoever binds a second claim to a volume', () => {
    const { store, crimes } = aTrial()
    store.claim(aClaim('b', { phase: 'Bound', volumeName: 'pv' }))
    expect(crimes).toEqual([
      'volume pv is bound to the claims default/a and default/b',
      'claim default/b became bound to volume pv, which belongs to default/a (uid-a)',
    ])
  })

  it('PROV-5 convicts whoever takes a volume from the claim that is bound to it, or deletes it', () => {
    const { store, crimes } = aTrial()
    store.volume('pv', aVolume('pv', { claim: 'b' }))
    store.volume('pv', aVolume('pv', { claim: 'a' }))
    store.volume('pv', undefined)
    expect(crimes).toEqual([
      'volume pv was taken from the claim default/a',
      'volume pv was deleted under the claim default/a',
    ])
  })

  it('PROV-5 convicts whoever gives to one claim what was set aside for another, unless it was given free', () => {
    const { store, crimes } = aTrial()
    store.claim(aClaim('b'))
    store.claim(aClaim('c'))
    store.volume('other', aVolume('other', { claim: 'b' }))
    store.volume('other', aVolume('other'))
    store.volume('other', aVolume('other', { claim: 'c' }))
    expect(crimes).toEqual([])
    store.volume('other', aVolume('other', { claim: 'b' }))
    expect(crimes).toEqual(['volume other was set aside for the claim default/c, and is given to default/b (uid-b)'])
    crimes.length = 0
    const reserved = aVolume('named')
    store.volume('named', { ...reserved, spec: { ...reserved.spec, claimRef: { namespace: 'default', name: 'b' } } })
    store.volume('named', aVolume('named', { claim: 'b' }))
    expect(crimes).toEqual([])
    store.volume('named', { ...reserved, spec: { ...reserved.spec, claimRef: { namespace: 'default', name: 'b' } } })
    store.volume('named', aVolume('named', { claim: 'c' }))
    expect(crimes).toEqual(['volume named was reserved for default/b (no uid), and is given to default/c (uid-c)'])
  })

  it('PROV-5 convicts whoever calls a claim bound to a volume that does not exist', () => {
    const { store, crimes } = aTrial()
    store.claim(aClaim('b', { phase: 'Bound', volumeName: 'nothing' }))
    expect(crimes).toEqual(['claim default/b became bound to volume nothing, which does not exist'])
  })
})

describe('the checker of deletions', () => {
  async function aTrial(before: Volume) {
    const world = createWorld(1)
    const store = aStore()
    const crimes: string[] = []
    const checker = checkDeletions(world, store.view, (crime) => void crimes.push(crime))
    const witness = checker.witness({ get: async () => before } as unknown as Client)
    store.volume('pv', before)
    const read = async () => {
      await world.runFor(1_000)
      await witness.client.get(persistentVolumeKind, { name: 'pv' })
    }
    return { world, store, crimes, checker, witness, read }
  }

  it('PROV-15 convicts whoever destroys what is to be retained', async () => {
    const { crimes, witness, read, checker } = await aTrial(aVolume('pv', { policy: 'Retain' }))
    await read()
    witness.destroys(driverAsset('pv'))
    expect(crimes).toEqual(['driver pv is destroyed, and volume pv has the policy Retain'])
    expect(checker.condemned.size).toBe(0)
  })

  it('PROV-14 convicts whoever destroys what a claim is bound to, but not for what it could not know', async () => {
    const { world, store, crimes, witness, read, checker } = await aTrial(aVolume('pv', { phase: 'Released' }))
    await read()
    store.claim(aClaim('a', { phase: 'Bound', volumeName: 'pv' }))
    await world.runFor(1_000)
    witness.destroys(driverAsset('pv'))
    expect([crimes, [...checker.condemned]]).toEqual([[], ['driver pv']])
    await read()
    witness.destroys(driverAsset('pv'))
    expect(crimes).toEqual(['driver pv is destroyed, and volume pv is bound to the claim default/a'])
  })

  it('PROV-14 convicts whoever looked too long ago', async () => {
    const { world, store, crimes, witness, read } = await aTrial(aVolume('pv', { phase: 'Released' }))
    await read()
    store.claim(aClaim('a', { phase: 'Bound', volumeName: 'pv' }))
    await world.runFor(29_000)
    witness.destroys(driverAsset('pv'))
    expect(crimes).toEqual([])
    await world.runFor(2_000)
    witness.destroys(driverAsset('pv'))
    expect(crimes).toEqual(['driver pv is destroyed, and volume pv is bound to the claim default/a'])
  })
})

describe('the checker of what is left', () => {
  function aTrial() {
    const store = aStore()
    const driver = createSimDriver(createWorld(1), 'driver')
    const abandoned = followAbandoned(store.view)
    const classes = new Map([['fast', { metadata: { name: 'fast' }, provisioner: 'd' } as StorageClass]])
    const storage = { driver, plugin: new Map<string, bigint>() }
    const condemned = new Set<string>()
    const problems = () => problemsOf({ view: store.view, storage, abandoned, condemned, classes })
    return { store, driver, abandoned, condemned, problems }
  }

  it('PROV-12 finds storage that no volume stands for, or that two do, and volumes that stand for nothing', () => {
    const { store, driver, condemned, problems } = aTrial()
    premadeVolume(driver, 'lost', 1)
    premadeVolume(driver, 'shared', 1)
    for (const name of ['one', 'two']) store.volume(name, aVolume(name, { handle: 'shared' }))
    store.volume('empty', aVolume('empty'))
    expect(problems()).toEqual([
      'volume empty stands for driver empty, which is gone',
      'driver lost (lost) leaked: no volume stands for it',
      'driver shared has several volumes: one, two',
    ])
    condemned.add(driverAsset('empty'))
    expect(problems()).not.toContain('volume empty stands for driver empty, which is gone')
  })

  it('PROV-15 does not blame anyone for storage that people gave up, unless it was to be deleted with its volume', () => {
    const { store, driver, abandoned, problems } = aTrial()
    const deletedByHand = (name: string, parts: VolumeParts) => {
      premadeVolume(driver, name, 1)
      const volume = aVolume(name, parts)
      store.volume(name, volume)
      abandoned.deletedByHand(volume)
      const metadata = { ...parts.metadata, deletionTimestamp: 'then' }
      store.volume(name, aVolume(name, { ...parts, metadata }))
      store.volume(name, undefined)
    }
    deletedByHand('retained', { policy: 'Retain' })
    deletedByHand('unheld', {})
    expect(problems()).toEqual([])
    deletedByHand('held', { metadata: { finalizers: [EXTERNAL_PROVISIONER_FINALIZER] } })
    expect(problems()).toEqual(['driver held (held) leaked: no volume stands for it'])
  })

  it('PROV-12 finds what is stuck in its deletion, and intents that nobody works on', () => {
    const { store, driver, problems } = aTrial()
    premadeVolume(driver, 'pv', 1)
    store.volume('pv', aVolume('pv', { metadata: { deletionTimestamp: 'then' } }))
    const claim = aClaim('a', { volumeName: 'gone' })
    const metadata = { ...claim.metadata, deletionTimestamp: 'then', finalizers: ['provisioning.stowage.dev/d'] }
    store.claim({ ...claim, metadata } as Claim)
    expect(problems()).toEqual([
      'volume pv is stuck in its deletion',
      'claim default/a is stuck in its deletion',
      'claim default/a keeps provisioning.stowage.dev/d for nothing',
    ])
  })

  it('PROV-6 finds claims that could be bound and are not', () => {
    const { store, driver, problems } = aTrial()
    premadeVolume(driver, 'pv', 1)
    store.volume('pv', aVolume('pv'))
    store.claim(aClaim('a'))
    store.claim(aClaim('b', { className: 'fast' }))
    expect(problems()).toEqual([
      'claim default/a could be bound: pv fits',
      'claim default/b could be bound: its class fast makes volumes',
    ])
  })
})

describe('the court', () => {
  it('SYS-14 names the seed, the crime, what is there and what led to it', () => {
    const world = createWorld(77)
    const court = createCourt(world, undefined, () => 'a claim')
    expect(() => court.adjourn()).not.toThrow()
    world.note('someone did something')
    court.convict('that was wrong')
    expect(() => court.adjourn()).toThrow(
      /^seed 77:\n0.000s: that was wrong\n-- what is there\na claim\n-- what led to it\n.*someone did something\n.*CHECK: that was wrong$/,
    )
  })
})
