// What could help a pod that no node would take: one table, from what kept it off to what may let it in. A pod is tried
// again when one of its lines applies, and only then. `waitsFor` says under which keys a pod is found, `concerns` which
// keys a change is about, `helps` whether it is a change for the better.

import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import type { CSIDriver } from '../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSINode } from '../api/kinds/csi-node/csi-node-schema.ts'
import type { Node } from '../api/kinds/node/node-schema.ts'
import { annotationOf, claimClassName, volumeClassName } from '../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'
import { claimKeyOf } from '../volumes/matching.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../volumes/names.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import { HOST_PORTS } from './plugins/host-ports/host-ports.ts'
import { NODE_AFFINITY } from './plugins/node-affinity/node-affinity.ts'
import { READ_WRITE_ONCE_POD } from './plugins/read-write-once-pod/read-write-once-pod.ts'
import { RESOURCES } from './plugins/resources/resources.ts'
import { TAINTS } from './plugins/taints/taints.ts'
import { UNSCHEDULABLE } from './plugins/unschedulable/unschedulable.ts'
import { requestedBytes, type VolumeCaches } from './plugins/volume-binding/pod-volumes.ts'
import { REASON_NO_SPACE } from './plugins/volume-binding/reasons.ts'
import { VOLUME_BINDING } from './plugins/volume-binding/volume-binding.ts'
import { VOLUME_LIMITS } from './plugins/volume-limits/volume-limits.ts'
import type { PodFacts } from './pod-facts.ts'
import type { Interests, Rejection } from './queue/parked-pods.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'

/** What can change, and what is known of a change. Without `old` it was added, without `next` it is gone. */
export interface Changes {
  node: { readonly next: Readonly<Node>; readonly old?: Readonly<Node> }
  csiNode: { readonly next?: Readonly<CSINode>; readonly old?: Readonly<CSINode> }
  podLeft: { readonly nodeName: string; readonly claims: readonly ObjectKey[] }
  detached: { readonly old: Readonly<VolumeAttachment> }
  claim: { readonly next: Readonly<PersistentVolumeClaim>; readonly old?: Readonly<PersistentVolumeClaim> }
  volume: { readonly next: Readonly<PersistentVolume>; readonly old?: Readonly<PersistentVolume> }
  storageClass: { readonly next: Readonly<StorageClass>; readonly old?: Readonly<StorageClass> }
  driver: { readonly next?: Readonly<CSIDriver>; readonly old: Readonly<CSIDriver> }
  capacity: { readonly now: CapacityReport; readonly before: CapacityReport | undefined }
  /** Capacity is no longer held back for a volume that will not be made, or that no report ever counted. */
  capacityFreed: { readonly driver: string }
  /** Claims and volumes that were set aside for a pod are free again, without any object having changed. */
  released: { readonly claims: readonly ObjectKey[]; readonly classNames: readonly string[] }
}

export interface HelpFacts {
  readonly caches: VolumeCaches
  /** Why this node would not take the pod now: undefined when it would. */
  readonly refusalOf: (pod: PodFacts, nodeName: string) => Refusal | 'no such node' | undefined
  readonly holdsBackCapacity: boolean
}

/** Who would refuse the pod, and in which words. */
export interface Refusal {
  readonly by: string
  readonly reasons: readonly string[]
}

interface Rule<S extends keyof Changes> {
  readonly on: S
  readonly keptOffBy: readonly string[]
  /** `group`: found under keys that pods alike share. `pod`: found under keys of its own. */
  readonly each: 'group' | 'pod'
  waitsFor(pod: PodFacts, facts: HelpFacts): readonly string[]
  concerns(change: Changes[S]): readonly string[]
  /** A refusal: not yet, but from now on the pod waits for what could change that, too. */
  helps?(pod: PodFacts, change: Changes[S], facts: HelpFacts, rejection: Rejection): boolean | Refusal
}

const rule = <S extends keyof Changes>(one: Rule<S>): Rule<any> => one
const anyNode = { waitsFor: () => ['node'], concerns: () => ['node'] }

export const RULES: readonly Rule<any>[] = [
  rule({
    on: 'node', // came, or changed in what any plugin looks at
    keptOffBy: [UNSCHEDULABLE, TAINTS, NODE_AFFINITY, HOST_PORTS, RESOURCES, VOLUME_LIMITS, VOLUME_BINDING],
    each: 'group',
    waitsFor: anyNode.waitsFor,
    concerns: ({ next, old }) => (old && looksTheSame(old, next) ? [] : anyNode.concerns()),
    helps: (pod, { next }, facts, rejection) => wouldTake(pod, next.metadata.name ?? '', facts, rejection),
  }),
  rule({
    on: 'podLeft', // made room on its node
    keptOffBy: [HOST_PORTS, RESOURCES, VOLUME_LIMITS],
    each: 'group',
    ...anyNode,
    helps: (pod, { nodeName }, facts, rejection) => wouldTake(pod, nodeName, facts, rejection),
  }),
  rule({
    on: 'podLeft', // stopped using a claim
    keptOffBy: [READ_WRITE_ONCE_POD],
    each: 'pod',
    waitsFor: claimKeys,
    concerns: ({ claims }) => claims.map(ofClaim),
  }),
  rule({
    on: 'detached', // one volume fewer on its node
    keptOffBy: [VOLUME_LIMITS],
    each: 'group',
    ...anyNode,
    helps: (pod, { old }, facts, rejection) => wouldTake(pod, old.spec.nodeName, facts, rejection),
  }),
  rule({
    on: 'csiNode', // a driver came, went, or takes more volumes
    keptOffBy: [VOLUME_LIMITS],
    each: 'group',
    waitsFor: anyNode.waitsFor,
    concerns: ({ next, old }) =>
      JSON.stringify(next?.spec.drivers) === JSON.stringify(old?.spec.drivers) ? [] : anyNode.concerns(),
    helps: (pod, { next, old }, facts, rejection) =>
      wouldTake(pod, (next ?? old)?.metadata.name ?? '', facts, rejection),
  }),
  rule({
    on: 'claim', // came, was bound, was given a node or lost it
    keptOffBy: [VOLUME_BINDING, VOLUME_LIMITS, READ_WRITE_ONCE_POD],
    each: 'pod',
    waitsFor: claimKeys,
    concerns: ({ next }) => [ofClaim(keyOfObject(next))],
    helps: (_, { next, old }) => !old || bindingOf(next) !== bindingOf(old),
  }),
  rule({
    on: 'volume', // belongs to one of the pod's claims
    keptOffBy: [VOLUME_BINDING],
    each: 'pod',
    waitsFor: (pod, { caches }) => [
      ...claimKeys(pod),
      ...pod.claims.flatMap(({ key }) => caches.claims.get(key)?.spec?.volumeName ?? []).map(ofVolume),
    ],
    concerns: ({ next }) => [ofVolume(next.metadata.name ?? ''), ...[claimKeyOf(next) ?? []].flat().map(ofClaim)],
    helps: (_, { next, old }) => !old || offerOf(next) !== offerOf(old),
  }),
  rule({
    on: 'volume', // of the right class, and nobody has it
    keptOffBy: [VOLUME_BINDING],
    each: 'group',
    waitsFor: classKeys,
    concerns: ({ next }) => (isFree(next) ? [ofClass(volumeClassName(next))] : []),
    helps: (_, { next, old }) => !old || !isFree(old) || offerOf(next) !== offerOf(old),
  }),
  rule({
    on: 'released', // by a pod that failed: its volumes
    keptOffBy: [VOLUME_BINDING],
    each: 'group',
    waitsFor: classKeys,
    concerns: ({ classNames }) => classNames.map(ofClass),
  }),
  rule({
    on: 'released', // by a pod that failed: its claims, which others share
    keptOffBy: [VOLUME_BINDING],
    each: 'pod',
    waitsFor: claimKeys,
    concerns: ({ claims }) => claims.map(ofClaim),
  }),
  rule({
    on: 'storageClass', // came, or allows other places
    keptOffBy: [VOLUME_BINDING],
    each: 'group',
    waitsFor: classKeys,
    concerns: ({ next }) => [ofClass(next.metadata.name ?? '')],
    helps: (_, { next, old }) =>
      !old || JSON.stringify(next.allowedTopologies) !== JSON.stringify(old.allowedTopologies),
  }),
  rule({
    on: 'driver', // is no longer checked for capacity, or no longer insists on being on the node
    keptOffBy: [VOLUME_BINDING, VOLUME_LIMITS],
    each: 'group',
    waitsFor: driverKeys,
    concerns: ({ old }) => [ofDriver(old.metadata.name ?? '')],
    helps: (_, { next, old }) =>
      isDropped('storageCapacity', old, next) || isDropped('preventPodSchedulingIfMissing', old, next),
  }),
  rule({
    on: 'capacity', // there is more of it, and enough for a claim
    keptOffBy: [VOLUME_BINDING],
    each: 'group',
    waitsFor: classKeys,
    concerns: ({ now }) => [ofClass(now.className)],
    helps: (pod, { now, before }, facts, { reasons }) =>
      reasons.has(REASON_NO_SPACE) && offersMore(now, before, facts) && isEnoughForOne(pod, now, facts),
  }),
  rule({
    on: 'capacityFreed',
    keptOffBy: [VOLUME_BINDING],
    each: 'group',
    waitsFor: driverKeys,
    concerns: ({ driver }) => [ofDriver(driver)],
    helps: (_pod, _change, _facts, { reasons }) => reasons.has(REASON_NO_SPACE),
  }),
]

/** The keys to find a parked pod by. */
export function interestsOf(pod: PodFacts, rejection: Rejection, facts: HelpFacts): Interests {
  const keys = { group: new Set<string>(), pod: new Set<string>() }
  for (const [nth, { keptOffBy, each, waitsFor }] of RULES.entries()) {
    if (!keptOffBy.some((name) => rejection.rejectedBy.has(name))) continue
    for (const key of waitsFor(pod, facts)) keys[each].add(`${nth} ${key}`)
  }
  return { shared: [...keys.group], own: [...keys.pod] }
}

/** Tells the queue of a change; every pod it could help is tried again. */
export function tellQueue<S extends keyof Changes>(
  queue: SchedulingQueue,
  on: S,
  change: Changes[S],
  facts: HelpFacts,
): void {
  const alsoWaitFor = ({ by, reasons }: Refusal, pod: QueuedPod, known: Rejection) => {
    const rejection = {
      ...known,
      rejectedBy: new Set([...known.rejectedBy, by]),
      reasons: new Set([...known.reasons, ...reasons]),
    }
    queue.parked.widen(pod.key, rejection, (one) => interestsOf(one.facts, rejection, facts))
  }
  if (queue.parked.size === 0) return
  for (const [nth, one] of RULES.entries()) {
    if (one.on !== on) continue
    const judge = (pod: QueuedPod, rejection: Rejection | undefined) => {
      if (!rejection) return
      const verdict = one.helps?.(pod.facts, change, facts, rejection) ?? true
      if (verdict === true) queue.help(pod)
      else if (verdict !== false) alsoWaitFor(verdict, pod, rejection)
    }
    for (const key of one.concerns(change)) {
      if (one.each === 'pod') {
        for (const pod of queue.parked.podsFor(`${nth} ${key}`)) judge(pod, queue.parked.rejectionOf(pod.key))
      } else {
        for (const { members, rejection } of queue.parked.groupsFor(`${nth} ${key}`)) {
          const [first] = members
          if (first) judge(first, rejection)
        }
      }
    }
  }
}

/**
 * Whether this node would take the pod now. One that would refuse it on grounds on which no node has before is told as
 * such: nothing that could change its mind is among what the pod waits for.
 */
function wouldTake(
  pod: PodFacts,
  nodeName: string,
  { refusalOf }: HelpFacts,
  { rejectedBy, reasons }: Rejection,
): boolean | Refusal {
  const refusal = refusalOf(pod, nodeName)
  if (!refusal) return true
  if (refusal === 'no such node') return false
  const isKnown = rejectedBy.has(refusal.by) && refusal.reasons.every((reason) => reasons.has(reason))
  return isKnown ? false : refusal
}

const ofClaim = (key: ObjectKey): string => `claim ${key}`
const ofVolume = (name: string): string => `volume ${name}`
const ofClass = (name: string): string => `class ${name}`
const ofDriver = (name: string): string => `driver ${name}`

function claimKeys({ claims }: PodFacts): string[] {
  return claims.map(({ key }) => ofClaim(key))
}

function classNamesOf({ claims }: PodFacts, { caches }: HelpFacts): string[] {
  return claims.flatMap(({ key }) => {
    const claim = caches.claims.get(key)
    return (claim && claimClassName(claim)) || []
  })
}

function classKeys(pod: PodFacts, facts: HelpFacts): string[] {
  return classNamesOf(pod, facts).map(ofClass)
}

function driverKeys(pod: PodFacts, facts: HelpFacts): string[] {
  return classNamesOf(pod, facts)
    .flatMap((name) => facts.caches.classes.get(name)?.provisioner ?? [])
    .map(ofDriver)
}

/** What plugins read of a node; its heartbeat is not among it. */
const looksTheSame = (a: Readonly<Node>, b: Readonly<Node>): boolean =>
  JSON.stringify([a.metadata.labels, a.spec?.taints, a.spec?.unschedulable, a.status?.allocatable]) ===
  JSON.stringify([b.metadata.labels, b.spec?.taints, b.spec?.unschedulable, b.status?.allocatable])

const bindingOf = (claim: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    claim.spec?.volumeName,
    claimClassName(claim),
    annotationOf(claim, BIND_COMPLETED),
    annotationOf(claim, SELECTED_NODE),
    claim.status?.phase,
    claim.metadata.ownerReferences,
    claim.metadata.deletionTimestamp === undefined,
  ])

const offerOf = ({ metadata, spec, status }: Readonly<PersistentVolume>): string =>
  JSON.stringify([
    metadata.labels,
    spec?.capacity,
    spec?.accessModes,
    spec?.nodeAffinity,
    spec?.storageClassName,
    spec?.volumeAttributesClassName,
    spec?.claimRef?.name,
    spec?.claimRef?.uid,
    status?.phase === 'Available',
  ])

const isFree = ({ metadata, spec, status }: Readonly<PersistentVolume>): boolean =>
  status?.phase === 'Available' && !spec?.claimRef && !metadata.deletionTimestamp

type Flag = 'storageCapacity' | 'preventPodSchedulingIfMissing'
const isDropped = (flag: Flag, old: Readonly<CSIDriver>, next: Readonly<CSIDriver> | undefined): boolean =>
  old.spec[flag] === true && next?.spec[flag] !== true

function offersMore(now: CapacityReport, before: CapacityReport | undefined, facts: HelpFacts): boolean {
  if (!before) return true
  return (
    isMore(now.limitBytes, before.limitBytes) ||
    (facts.holdsBackCapacity && isMore(now.capacityBytes, before.capacityBytes))
  )
}

const isMore = (now: bigint | undefined, before: bigint | undefined): boolean =>
  now !== undefined && (before === undefined || now > before)

function isEnoughForOne(
  { claims }: PodFacts,
  { limitBytes, className }: CapacityReport,
  { caches }: HelpFacts,
): boolean {
  return claims.some(({ key }) => {
    const claim = caches.claims.get(key)
    if (!claim || claimClassName(claim) !== className) return false
    return limitBytes !== undefined && limitBytes >= requestedBytes(claim)
  })
}
