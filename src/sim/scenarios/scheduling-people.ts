// The people of the scheduling scenario: users who make and delete pods and claims, and an administrator whose nodes get
// lost, come back, are cordoned, and who writes capacity objects by hand that are not true. Each act is a roll of the
// dice.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Random } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { SchedulingView } from '../checkers/scheduling-view.ts'
import type { SimDriver } from '../driver.ts'
import type { World } from '../world.ts'
import { createClaim, createNode, createPod, NAMESPACE, PLACE, registerDriver } from './scheduling-objects.ts'

export interface SchedulingPeople {
  /** One of them does something. */
  act(client: Client): Promise<unknown>
  /** Pods whose node is gone are removed, as in any cluster. */
  removeStranded(client: Client): Promise<void>
  /** All nodes are back and take pods, pods of lost nodes are gone, and nothing made by hand is left. */
  restore(client: Client): Promise<void>
  /** Changes that can help no pod, whatever it waits for. */
  changeUnrelated(client: Client): Promise<void>
}

export interface PeopleOptions {
  readonly world: World
  readonly view: SchedulingView
  readonly driver: SimDriver
  readonly nodes: readonly string[]
  readonly classNames: readonly string[]
}

const PODS = 8
const CLAIMS = 4
const BY_HAND = 'by-hand'
/** What people write into capacity objects. */
const ABSURD = ['0', '1Ei', '-5Gi', '3Gi'] as const

export function createSchedulingPeople(options: PeopleOptions): SchedulingPeople {
  const { world, view, driver, nodes, classNames } = options
  const dice = world.dice('people')
  const acts: [weight: number, act: (client: Client) => Promise<unknown> | undefined][] = [
    [12, makePod],
    [6, deletePod],
    [3, makeClaim],
    [1, deleteClaim],
    [2, loseNode],
    [3, returnNode],
    [2, cordon],
    [1, reportByHand],
    [2, reportLate],
  ]
  const weights = acts.reduce((sum, [weight]) => sum + weight, 0)

  function makePod(client: Client) {
    const name = `p${roll(PODS)}`
    const claims = dice() < 0.4 ? [`c${roll(CLAIMS)}`] : []
    const ephemeral = Array.from({ length: roll(3) }, wanted)
    world.note(`people: make pod ${name} ${JSON.stringify({ claims, ephemeral })}`)
    return createPod(client, name, { claims, ephemeral })
  }

  function deletePod(client: Client) {
    const pod = pick(dice, [...view.pods.values()])
    if (!pod) return
    world.note(`people: delete pod ${pod.metadata.name}`)
    return client.delete(podKind, refOf(pod), { gracePeriodSeconds: 0 })
  }

  function makeClaim(client: Client) {
    const name = `c${roll(CLAIMS)}`
    world.note(`people: make claim ${name}`)
    return createClaim(client, name, wanted())
  }

  function deleteClaim(client: Client) {
    const claim = pick(dice, [...view.claims.values()])
    if (!claim) return
    world.note(`people: delete claim ${claim.metadata.name}`)
    return client.delete(persistentVolumeClaimKind, refOf(claim))
  }

  async function loseNode(client: Client): Promise<void> {
    const name = pick(dice, [...view.nodes.keys()])
    if (!name) return
    world.note(`people: lose ${name}`)
    await client.delete(nodeKind, { name })
    if (dice() < 0.5) await client.delete(csiNodeKind, { name })
  }

  function returnNode(client: Client) {
    const name = pick(
      dice,
      nodes.filter((one) => !view.nodes.has(one)),
    )
    if (!name) return
    world.note(`people: bring back ${name}`)
    return bringBack(client, name)
  }

  async function bringBack(client: Client, name: string): Promise<void> {
    await client.delete(csiNodeKind, { name }).catch(() => {}) // of its former life
    await createNode(client, name, driver.settings.name).catch(ifNotThere)
  }

  function cordon(client: Client) {
    const node = pick(dice, [...view.nodes.values()])
    if (!node) return
    const body = { spec: { unschedulable: !node.spec?.unschedulable } }
    world.note(`people: cordon ${node.metadata.name} ${JSON.stringify(body)}`)
    return client.patch(nodeKind, { name: node.metadata.name ?? '' }, { type: 'merge', body })
  }

  function reportByHand(client: Client) {
    const object = {
      metadata: { namespace: NAMESPACE, name: `${BY_HAND}-${roll(2)}` },
      storageClassName: pick(dice, classNames)!,
      nodeTopology: dice() < 0.2 ? {} : { matchLabels: { [PLACE]: pick(dice, nodes)! } },
      capacity: pick(dice, ABSURD)!,
    }
    world.note(`people: report by hand ${JSON.stringify(object)}`)
    return client.create(csiStorageCapacityKind, object as never)
  }

  /** The driver's reports stay as they are for a while. */
  function reportLate(): undefined {
    if (dice() < 0.5) driver.freezeCapacity()
    else driver.unfreezeCapacity()
  }

  async function removeStranded(client: Client): Promise<void> {
    for (const pod of [...view.pods.values()]) {
      if (!pod.spec?.nodeName || view.nodes.has(pod.spec.nodeName)) continue
      await client.delete(podKind, refOf(pod), { gracePeriodSeconds: 0 }).catch(() => {})
    }
  }

  const roll = (sides: number): number => Math.floor(dice() * sides)
  const wanted = () => ({ sizeGi: 1 + roll(2), className: pick(dice, classNames)! })

  return {
    act(client) {
      let left = dice() * weights
      for (const [weight, act] of acts) {
        left -= weight
        if (left < 0) return Promise.resolve(act(client))
      }
      return Promise.resolve()
    },
    removeStranded,
    async restore(client) {
      await removeStranded(client)
      driver.unfreezeCapacity()
      for (const name of nodes) {
        if (!view.nodes.has(name)) await bringBack(client, name)
        await registerDriver(client, name, driver.settings.name).catch(ifNotThere)
      }
      for (const name of view.nodes.keys()) {
        await client.patch(nodeKind, { name }, { type: 'merge', body: { spec: { unschedulable: null } } })
      }
      for (const nth of [0, 1]) {
        const ref = { namespace: NAMESPACE, name: `${BY_HAND}-${nth}` }
        await client.delete(csiStorageCapacityKind, ref).catch(() => {})
      }
    },
    async changeUnrelated(client) {
      const metadata = { namespace: NAMESPACE, name: `note-${roll(1_000_000)}` }
      await client.create(configMapKind, { metadata } as never)
      const seen = { type: 'merge', body: { metadata: { annotations: { seen: String(world.nowMs) } } } } as const
      const heartbeat = { conditions: [{ type: 'Ready', status: 'True', reason: `${world.nowMs}` }] }
      for (const name of view.nodes.keys()) {
        const beat = { type: 'merge', body: { status: heartbeat } } as const
        await client.patch(nodeKind, { name }, beat, { subresource: 'status' })
      }
      for (const pod of view.pods.values()) await client.patch(podKind, refOf(pod), seen)
      for (const claim of view.claims.values()) await client.patch(persistentVolumeClaimKind, refOf(claim), seen)
      for (const name of view.volumes.keys()) await client.patch(persistentVolumeKind, { name }, seen)
      for (const report of view.capacities.values()) await client.patch(csiStorageCapacityKind, refOf(report), seen)
    },
  }
}

/** Another of them was faster. */
function ifNotThere(error: unknown): void {
  if (!(error instanceof ApiError && error.code === 409)) throw error
}

const refOf = ({ metadata: { namespace = '', name = '' } }: { metadata: { namespace?: string; name?: string } }) => ({
  namespace,
  name,
})

function pick<T>(dice: Random, from: readonly T[]): T | undefined {
  return from[Math.floor(dice() * from.length)]
}
