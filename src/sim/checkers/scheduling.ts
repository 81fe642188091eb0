// What must hold where pods are placed by their volumes. At every moment: a pod gets a node only when all its claims have
// volumes that the node reaches. Once nothing moves: no pool is over-full, nothing leaked, reports are true, every pod
// has a node or says why not, and none waits for room that is there.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { keyOfObject } from '../../client/index.ts'
import { INTENT_PREFIX } from '../../controllers/provisioning/intent.ts'
import { SELECTED_NODE } from '../../volumes/names.ts'
import { isReachableFrom } from '../../volumes/node-affinity.ts'
import type { SimDriver } from '../driver.ts'
import type { SchedulingView } from './scheduling-view.ts'

type Claim = Readonly<PersistentVolumeClaim>

/** Judges every binding of a pod, by what the store held when it was made. */
export function checkPlacements(view: SchedulingView, convict: (crime: string) => void): void {
  view.onBound((pod) => {
    // Whoever places a pod cannot know yet that a claim was deleted under it, and made anew.
    if (claimsOf(pod, view).some(({ key }) => view.deletedClaims.has(key))) return
    for (const problem of placementProblems(pod, view)) convict(`${problem}, and it was given its node`)
  })
}

function placementProblems(pod: Readonly<Pod>, view: SchedulingView): string[] {
  const { nodeName = '' } = pod.spec ?? {}
  const node = view.nodes.get(nodeName)
  if (!node) return [] // it was lost while the pod was on its way
  return claimsOf(pod, view).flatMap(({ key, claim }) => {
    if (!claim) return []
    const volume = view.volumes.get(claim.spec?.volumeName ?? '')
    const selected = annotationOf(claim, SELECTED_NODE)
    if (!volume && selected && selected !== nodeName) {
      return [`pod ${keyOfObject(pod)} is on ${nodeName}, and its claim ${key} is to be made on ${selected}`]
    }
    if (!volume) return [`claim ${key} of pod ${keyOfObject(pod)} on ${nodeName} has no volume`]
    const where = { name: nodeName, labels: node.metadata.labels ?? {} }
    return isReachableFrom(volume, where)
      ? []
      : [`volume ${volume.metadata.name} of pod ${keyOfObject(pod)} is not reached from ${nodeName}`]
  })
}

export interface QuietScheduling {
  readonly view: SchedulingView
  readonly driver: SimDriver
  readonly classNames: readonly string[]
  /** How many copies a class makes of each byte. */
  readonly copiesOf: (className: string) => number
  /** The pool of a node. */
  readonly poolOf: (node: string) => string
}

export const problemsOf = (world: QuietScheduling): string[] => [
  ...poolProblems(world),
  ...leaks(world),
  ...reportProblems(world),
  ...[...world.view.pods.values()].flatMap((pod) => podProblems(pod, world)),
  ...[...world.view.claims.values()].flatMap((claim) => claimProblems(claim, world)),
]

function freeBytes({ driver }: QuietScheduling, pool: string): number {
  let free = driver.settings.pools.find(({ name }) => name === pool)?.capacityBytes ?? 0
  for (const volume of Object.values(driver.state().volumes)) {
    if (volume.pool === pool) free -= volume.capacityBytes * volume.copies
  }
  return free
}

const poolProblems = (world: QuietScheduling): string[] =>
  world.driver.settings.pools.flatMap(({ name }) => {
    const free = freeBytes(world, name)
    return free < 0 ? [`pool ${name} is over-full by ${-free} bytes`] : []
  })

function leaks({ view, driver }: QuietScheduling): string[] {
  const volumes = driver.state().volumes
  const held = new Set(Object.keys(volumes))
  const known = new Set([...view.volumes.values()].map(({ spec }) => spec?.csi?.volumeHandle ?? ''))
  const awaited = new Set([...view.claims.values()].filter(isOpen).map(({ metadata }) => `pvc-${metadata.uid}`))
  return [
    ...[...held]
      .filter((id) => !known.has(id) && !awaited.has(volumes[id]!.name))
      .map((id) => `${id} leaked: no volume stands for it`),
    ...[...known].filter((id) => !held.has(id)).map((id) => `a volume stands for ${id}, which is gone`),
    ...[...view.volumes.values()].flatMap(({ metadata: { name }, status, spec }) => {
      const claim = view.claims.get(`${spec?.claimRef?.namespace}/${spec?.claimRef?.name}`)
      const isItsOwn = claim?.metadata.uid === spec?.claimRef?.uid && claim?.spec?.volumeName === name
      return isItsOwn && status?.phase === 'Bound' ? [] : [`volume ${name} is ${status?.phase}, and no claim has it`]
    }),
  ]
}

/**
 * Its maker died not knowing whether there is a volume, and its node was lost: it cannot be asked for as it was. The
 * intent on the claim stands for it until another node is chosen.
 */
const isOpen = (claim: Claim): boolean =>
  !annotationOf(claim, SELECTED_NODE) &&
  (claim.metadata.finalizers ?? []).some((finalizer) => finalizer.startsWith(INTENT_PREFIX))

/** Every node and class has one report, and it says what the driver has. Where there is nothing, there may be none. */
function reportProblems(world: QuietScheduling): string[] {
  const { view, copiesOf, poolOf, classNames } = world
  const said = new Map<string, bigint[]>()
  for (const { storageClassName, nodeTopology, capacity } of view.capacities.values()) {
    const [node = ''] = Object.values(nodeTopology?.matchLabels ?? {})
    const place = `${storageClassName} on ${node}`
    said.set(place, [...(said.get(place) ?? []), quantityToBytes(capacity ?? '0')])
  }
  const problems = [...view.nodes.keys()].flatMap((node) =>
    classNames.flatMap((className) => {
      const place = `${className} on ${node}`
      const free = BigInt(Math.floor(freeBytes(world, poolOf(node)) / copiesOf(className)))
      const [bytes, ...more] = said.get(place) ?? (free === 0n ? [0n] : [])
      said.delete(place)
      const isTrue = bytes === free && more.length === 0
      return isTrue ? [] : [`the reports of ${place} say ${[bytes, ...more].join(', ')}, and ${free} is free`]
    }),
  )
  return [...problems, ...[...said.keys()].map((place) => `there is a report of ${place}, where nobody is`)]
}

function podProblems(pod: Readonly<Pod>, world: QuietScheduling): string[] {
  const { view } = world
  const key = keyOfObject(pod)
  if (pod.metadata.deletionTimestamp) return [`pod ${key} is stuck in its deletion`]
  if (pod.spec?.nodeName) return placementProblems(pod, view)
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || !condition.message) return [`pod ${key} has no node and does not say why`]
  const node = nodeFor(pod, world)
  return node ? [`pod ${key} has no node, though ${node} has room: it says "${condition.message}"`] : []
}

/** A node that would do, by what the driver really has. */
function nodeFor(pod: Readonly<Pod>, world: QuietScheduling): string | undefined {
  const { view, copiesOf, poolOf } = world
  const claims = claimsOf(pod, view)
  if (claims.some(({ claim }) => !claim || claim.metadata.deletionTimestamp)) return undefined
  for (const [name, { metadata, spec }] of view.nodes) {
    if (spec?.unschedulable) continue
    const where = { name, labels: metadata.labels ?? {} }
    let needed = 0
    const isPossible = claims.every(({ claim, isEphemeral }) => {
      const volume = view.volumes.get(claim?.spec?.volumeName ?? '')
      if (volume && isReachableFrom(volume, where)) return true
      needed += Number(bytesOf(claim!)) * copiesOf(claimClassName(claim!) ?? '')
      return !volume || isEphemeral // which can be made again elsewhere
    })
    if (isPossible && freeBytes(world, poolOf(name)) >= needed) return name
  }
  return undefined
}

function claimProblems(claim: Claim, { view }: QuietScheduling): string[] {
  const key = keyOfObject(claim)
  const users = [...view.pods.values()].filter((pod) => claimsOf(pod, view).some((one) => one.key === key))
  const problems: string[] = []
  if (claim.metadata.deletionTimestamp && !users.some(({ spec }) => spec?.nodeName)) {
    problems.push(`claim ${key} is stuck in its deletion`)
  }
  const owner = claim.metadata.ownerReferences?.find(({ kind }) => kind === 'Pod')
  if (owner && ![...view.pods.values()].some(({ metadata }) => metadata.uid === owner.uid)) {
    problems.push(`claim ${key} belongs to a pod that is gone`)
  }
  const selected = annotationOf(claim, SELECTED_NODE)
  if (selected && !claim.spec?.volumeName && users.length === 0) return problems // nobody waits for it
  if (selected && !claim.spec?.volumeName) problems.push(`claim ${key} has a node selected and no volume`)
  return problems
}

export function claimsOf({ metadata, spec }: Readonly<Pod>, view: SchedulingView) {
  return (spec?.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim, ephemeral }) => {
    const name = persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${volume}` : undefined)
    if (name === undefined) return []
    const key = `${metadata.namespace}/${name}`
    return [{ key, claim: view.claims.get(key), isEphemeral: ephemeral !== undefined }]
  })
}

const bytesOf = ({ spec }: Claim): bigint => quantityToBytes(spec?.resources?.requests?.storage ?? '0')
