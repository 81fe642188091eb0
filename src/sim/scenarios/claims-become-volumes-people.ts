// The people of the scenario: users who make, edit and delete claims, and administrators who make volumes and classes,
// take them away, change policies, and give released volumes back. Each act is a roll of the dice.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Random } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import { SELECTED_NODE } from '../../volumes/names.ts'
import type { Abandoned } from '../checkers/abandoned.ts'
import { driverAsset } from '../checkers/assets.ts'
import type { StoreView } from '../checkers/store-view.ts'
import type { SimDriver } from '../driver.ts'
import { premadeVolume } from '../premade-volume.ts'
import type { World } from '../world.ts'
import { PLUGIN } from './claims-become-volumes-processes.ts'

export interface PeopleOptions {
  readonly world: World
  readonly view: StoreView
  readonly driver: SimDriver
  readonly abandoned: Abandoned
}

export interface People {
  /** One of them does something. */
  act(client: Client): Promise<unknown>
  /** The administrator tidies up: every class is there, as it is meant to be. */
  restoreClasses(client: Client): Promise<void>
  readonly classes: ReadonlyMap<string, StorageClass>
}

const CLAIMS = 10
const VOLUMES = 5
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'

export function createPeople({ world, view, driver, abandoned }: PeopleOptions): People {
  const dice = world.dice('people')
  const { name: driverName } = driver.settings
  const classes = new Map(
    [
      classOf('fast', driverName, 'Delete', 'Immediate'),
      classOf('careful', driverName, 'Retain', 'Immediate'),
      classOf('late', driverName, 'Delete', 'WaitForFirstConsumer'),
      classOf('memory', PLUGIN, 'Delete', 'Immediate'),
      classOf('promised', driverName, 'Delete', 'Immediate'), // claims name it before it exists
    ].map((one) => [one.metadata.name!, one]),
  )
  const classNames = [...classes.keys()]
  let imported = 0

  const acts: [weight: number, act: (client: Client) => Promise<unknown> | undefined][] = [
    [10, makeClaim],
    [6, deleteClaim],
    [2, editClaim],
    [4, chooseNode],
    [4, makeVolume],
    [2, deleteVolume],
    [3, giveBack],
    [2, changePolicy],
    [1, deleteClass],
    [3, makeClass],
    [1, markDefault],
  ]
  const weights = acts.reduce((sum, [weight]) => sum + weight, 0)

  function makeClaim(client: Client) {
    const storageClassName = pick(dice, [...classNames, ...classNames, 'shelf', 'shelf', '', undefined])
    const roll = dice()
    const spec = {
      accessModes: [dice() < 0.8 ? 'ReadWriteOnce' : 'ReadWriteMany'],
      resources: { requests: { storage: `${1 + Math.floor(dice() * 3)}Gi` } },
      ...(storageClassName === undefined ? {} : { storageClassName }),
      ...(roll < 0.1
        ? { volumeName: volumeName() }
        : roll < 0.2
          ? { selector: { matchLabels: { tier: 'gold' } } }
          : {}),
    }
    const name = `c${Math.floor(dice() * CLAIMS)}`
    world.note(`people: make claim ${name} ${JSON.stringify(spec)}`)
    return client.create(persistentVolumeClaimKind, { metadata: { namespace: 'default', name }, spec } as never)
  }

  function deleteClaim(client: Client) {
    const claim = pick(dice, [...view.claims.values()])
    if (!claim) return
    world.note(`people: delete claim ${claim.metadata.name}`)
    return client.delete(persistentVolumeClaimKind, refOf(claim), { uid: claim.metadata.uid })
  }

  function editClaim(client: Client) {
    const claim = pick(dice, [...view.claims.values()])
    const body = { metadata: { labels: { touched: String(Math.floor(dice() * 1_000)) } } }
    return claim && client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'merge', body })
  }

  /** As a scheduler does. */
  function chooseNode(client: Client) {
    const late = [...view.claims.values()].filter(
      ({ metadata, spec }) => spec?.storageClassName === 'late' && !metadata.annotations?.[SELECTED_NODE],
    )
    const claim = pick(dice, late)
    if (!claim) return
    world.note(`people: choose a node for ${claim.metadata.name}`)
    const body = { metadata: { annotations: { [SELECTED_NODE]: 'node-1' } } }
    return client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'merge', body })
  }

  function makeVolume(client: Client) {
    const isOfDriver = dice() < 0.5
    const name = volumeName()
    const isReserved = dice() < 0.2
    const source = isOfDriver
      ? { csi: { driver: driverName, volumeHandle: importVolume() } }
      : { nfs: { server: 'filer', path: `/${name}` } }
    const spec = {
      capacity: { storage: '3Gi' },
      accessModes: dice() < 0.5 ? ['ReadWriteOnce'] : ['ReadWriteOnce', 'ReadWriteMany'],
      persistentVolumeReclaimPolicy: isOfDriver && dice() < 0.5 ? 'Delete' : 'Retain',
      storageClassName: dice() < 0.8 ? 'shelf' : dice() < 0.5 ? '' : 'fast',
      ...(isReserved ? { claimRef: { namespace: 'default', name: `c${Math.floor(dice() * CLAIMS)}` } } : {}),
      ...source,
    }
    const labels = dice() < 0.5 ? { tier: 'gold' } : {}
    world.note(`people: make volume ${name} ${JSON.stringify(spec)}`)
    return client.create(persistentVolumeKind, { metadata: { name, labels }, spec } as never)
  }

  /** Storage that was there before us; until its volume exists it is nobody's. */
  function importVolume(): string {
    const id = `imported-${++imported}`
    premadeVolume(driver, id, 3 * 1024 ** 3)
    abandoned.imported(driverAsset(id))
    return id
  }

  function deleteVolume(client: Client) {
    const volume = pick(dice, [...view.volumes.values()])
    if (!volume) return
    abandoned.deletedByHand(volume)
    world.note(`people: delete volume ${volume.metadata.name}`)
    return client.delete(persistentVolumeKind, refOf(volume), { uid: volume.metadata.uid })
  }

  /** Only what is released, and only as it was seen: what a claim has is not taken from it. */
  function giveBack(client: Client) {
    const volume = pick(
      dice,
      [...view.volumes.values()].filter(({ status }) => status?.phase === 'Released'),
    )
    if (!volume) return
    const { uid, resourceVersion } = volume.metadata
    world.note(`people: give ${volume.metadata.name} back`)
    const body = { metadata: { uid, resourceVersion }, spec: { claimRef: null } }
    return client.patch(persistentVolumeKind, refOf(volume), { type: 'merge', body })
  }

  function changePolicy(client: Client) {
    const volume = pick(dice, [...view.volumes.values()])
    if (!volume) return
    const persistentVolumeReclaimPolicy = dice() < 0.5 || volume.spec?.nfs ? 'Retain' : 'Delete'
    world.note(`people: policy of ${volume.metadata.name} is ${persistentVolumeReclaimPolicy}`)
    const body = { metadata: { uid: volume.metadata.uid }, spec: { persistentVolumeReclaimPolicy } }
    return client.patch(persistentVolumeKind, refOf(volume), { type: 'merge', body })
  }

  function deleteClass(client: Client) {
    const name = pick(dice, classNames)!
    world.note(`people: delete class ${name}`)
    return client.delete(storageClassKind, { name })
  }

  function makeClass(client: Client) {
    const name = pick(dice, classNames)!
    world.note(`people: make class ${name}`)
    return client.create(storageClassKind, classes.get(name)!)
  }

  function markDefault(client: Client) {
    const name = pick(dice, classNames)!
    const body = { metadata: { annotations: { [DEFAULT_CLASS]: dice() < 0.5 ? 'true' : 'false' } } }
    world.note(`people: class ${name} is default: ${body.metadata.annotations[DEFAULT_CLASS]}`)
    return client.patch(storageClassKind, { name }, { type: 'merge', body })
  }

  const volumeName = () => `s${Math.floor(dice() * VOLUMES)}`

  return {
    classes,
    async act(client) {
      let roll = dice() * weights
      for (const [weight, act] of acts) {
        roll -= weight
        if (roll < 0) return act(client)
      }
      return undefined
    },
    async restoreClasses(client) {
      for (const one of classes.values()) await client.create(storageClassKind, one).catch(() => {})
    },
  }
}

const classOf = (name: string, provisioner: string, reclaimPolicy: string, volumeBindingMode: string) =>
  ({ metadata: { name }, provisioner, reclaimPolicy, volumeBindingMode }) as StorageClass

const refOf = ({ metadata: { namespace, name = '' } }: { metadata: { namespace?: string; name?: string } }) => ({
  name,
  ...(namespace ? { namespace } : {}),
})

const pick = <T>(dice: Random, from: readonly T[]): T | undefined => from[Math.floor(dice() * from.length)]
