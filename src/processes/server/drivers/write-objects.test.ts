import { beforeEach, describe, expect, it } from 'vitest'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import type { ControllerCapability, DriverFacts, PluginService } from '../../../csi/index.ts'
import { createLocalDriverObjects, IS_DEFAULT } from '../initial-objects.ts'
import { DERIVED_ANNOTATION, planObject, writeDriverObjects } from './write-objects.ts'

const NAME = 'x.example'
const facts = (controller: readonly ControllerCapability[], plugin: readonly PluginService[] = []): DriverFacts => ({
  name: NAME,
  version: '1',
  plugin: new Set(plugin),
  expansion: new Set(),
  controller: new Set(controller),
  node: new Set(),
})

describe('writeDriverObjects', () => {
  let fixture: ServerFixture
  let client: Client
  const write = (driverFacts: DriverFacts, becomesDefault = true) =>
    writeDriverObjects({ facts: driverFacts, becomesDefault, client: fixture.clientOf('driver-setup') })
  const readClass = () => client.get(storageClassKind, { name: NAME })
  const readDriver = () => client.get(csiDriverKind, { name: NAME })
  const listDefaults = async () =>
    (await client.list(storageClassKind)).items
      .filter(({ metadata }) => metadata.annotations?.[IS_DEFAULT] === 'true')
      .map(({ metadata }) => metadata.name)
  const createVolume = () =>
    client.create(persistentVolumeKind, {
      metadata: { name: 'v' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: NAME, volumeHandle: 'v' },
      },
    } as never)
  beforeEach(async () => {
    fixture = await createServerFixture()
    client = fixture.client()
    await createLocalDriverObjects(client, { mayBeDefault: true })
  })

  it('creates both objects, and makes the class the default class in place of `local`', async () => {
    const objects = await write(facts(['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME']))
    expect(objects).toMatchObject({ isDefaultClass: true, notes: [] })
    expect(await listDefaults()).toEqual([NAME])
    expect((await readDriver()).spec).toMatchObject({ attachRequired: true, storageCapacity: false })
    const { metadata } = await readClass()
    expect(await write(facts(['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME']))).toMatchObject({ notes: [] })
    expect((await readClass()).metadata.resourceVersion).toBe(metadata.resourceVersion) // nothing is written again
  })

  it('does not make the class of a second driver the default class', async () => {
    expect(await write(facts(['CREATE_DELETE_VOLUME']), false)).toMatchObject({ isDefaultClass: false, notes: [] })
    expect(await listDefaults()).toEqual(['local'])
  })

  it('creates no class for a driver without CREATE_DELETE_VOLUME', async () => {
    const { storageClass, notes } = await write(facts(['PUBLISH_UNPUBLISH_VOLUME']))
    expect(storageClass).toBeUndefined()
    expect(notes).toEqual([expect.stringContaining('no CREATE_DELETE_VOLUME')])
  })

  it('keeps a default class that a user created', async () => {
    const metadata = { name: 'fast', annotations: { [IS_DEFAULT]: 'true' } }
    await client.create(storageClassKind, { metadata, provisioner: 'other' } as never)
    const { isDefaultClass, notes } = await write(facts(['CREATE_DELETE_VOLUME']))
    expect([isDefaultClass, notes]).toEqual([false, [expect.stringContaining('fast stays the default class')]])
  })

  it('updates the objects if the capabilities change, even in immutable fields', async () => {
    await write(facts(['CREATE_DELETE_VOLUME']))
    await client.patch(
      storageClassKind,
      { name: NAME },
      { type: 'merge', body: { metadata: { labels: { team: 'a' } } } },
    )
    const capabilities = ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME', 'GET_CAPACITY', 'PUBLISH_UNPUBLISH_VOLUME'] as const
    await write(facts(capabilities.slice(0, 3)))
    expect([(await readClass()).allowVolumeExpansion, (await readDriver()).spec.storageCapacity]).toEqual([true, true])
    const { notes } = await write(facts(capabilities, ['VOLUME_ACCESSIBILITY_CONSTRAINTS']))
    expect(notes).toEqual([])
    expect((await readDriver()).spec.attachRequired).toBe(true)
    expect(await readClass()).toMatchObject({
      volumeBindingMode: 'WaitForFirstConsumer',
      metadata: { labels: { team: 'a' }, annotations: { [IS_DEFAULT]: 'true' } },
    })
  })

  it('keeps attachRequired while volumes of the driver exist, and reports it', async () => {
    await write(facts(['CREATE_DELETE_VOLUME']))
    await createVolume()
    const { notes } = await write(facts(['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME']))
    expect(notes).toEqual([expect.stringContaining('attachRequired false')])
    expect((await readDriver()).spec.attachRequired).toBe(false)
  })

  it('does not update objects that a user changed, nor recreate a deleted class', async () => {
    await write(facts(['CREATE_DELETE_VOLUME']))
    await client.patch(storageClassKind, { name: NAME }, { type: 'merge', body: { allowVolumeExpansion: true } })
    await client.patch(csiDriverKind, { name: NAME }, { type: 'merge', body: { spec: { podInfoOnMount: true } } })
    const { notes } = await write(facts(['CREATE_DELETE_VOLUME', 'GET_CAPACITY']))
    expect(notes).toHaveLength(2)
    expect((await readDriver()).spec).toMatchObject({ podInfoOnMount: true, storageCapacity: false })
    expect((await readClass()).allowVolumeExpansion).toBe(true)
    await client.delete(storageClassKind, { name: NAME })
    expect(await write(facts(['CREATE_DELETE_VOLUME']))).toMatchObject({ storageClass: undefined })
  })

  it('uses objects that a user created first', async () => {
    await client.create(csiDriverKind, { metadata: { name: NAME }, spec: { attachRequired: false } } as never)
    await client.create(storageClassKind, { metadata: { name: 'gold' }, provisioner: NAME } as never)
    const { csiDriver, storageClass } = await write(facts(['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME']))
    expect([csiDriver.spec.attachRequired, storageClass?.metadata.name]).toEqual([false, 'gold'])
    expect(csiDriver.metadata.annotations?.[DERIVED_ANNOTATION]).toBeUndefined()
  })
})

it.each([
  ['create', undefined, undefined],
  ['nothing', { a: 1, b: 2 }, undefined],
  ['nothing', { b: 2, a: 1 }, 'other'],
  ['update', { a: 1, b: 3 }, '{"a":1,"b":3}'],
  ['replace', { a: 9, b: 2 }, '{"a":9,"b":2}'],
  ['leave', { a: 9, b: 2 }, '{"a":9,"b":4}'],
  ['leave', { a: 9, b: 2 }, undefined],
] as const)('planObject plans %s for %j with annotation %j', (action, content, recordedContent) => {
  const derivedContent = { a: 1, b: 2 }
  expect(planObject({ content, recordedContent, derivedContent, immutableFields: ['a'] })).toEqual({ do: action })
})
