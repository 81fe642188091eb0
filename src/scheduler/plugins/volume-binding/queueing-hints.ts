// The queueing hints of VolumeBinding: the cluster events that can make a pod that it rejected schedulable.
import { claimClassName, volumeClassName } from '../../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { claimKeyOf } from '../../../volumes/matching.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { QueueingHint } from '../../framework/cluster-events.ts'
import { reasonKey } from '../../framework/status.ts'
import { claimChanged, claimKey, claimKeys, driversChanged, nodeChanged } from '../shared-hints.ts'
import { isAvailable } from './available-volumes.ts'
import { type CapacityReport, parseCapacityReport } from './capacity/capacity-report.ts'
import { requestedBytes, type VolumeCaches } from './pod-volumes.ts'
import { NOT_ENOUGH_SPACE } from './reasons.ts'

export const classKey = (name: string): string => `class ${name}`
export const driverKey = (name: string): string => `driver ${name}`
const volumeKey = (name: string): string => `volume ${name}`
const NOT_ENOUGH_SPACE_KEY = reasonKey(NOT_ENOUGH_SPACE)

export function volumeBindingHints(caches: VolumeCaches, hasReservations: boolean): readonly QueueingHint[] {
  const classNamesOf = ({ claims }: PodInfo): string[] =>
    claims.flatMap(({ key }) => {
      const claim = caches.claims.get(key)
      return (claim && claimClassName(claim)) || []
    })
  const classKeys = (pod: PodInfo) => classNamesOf(pod).map(classKey)
  const driverKeys = (pod: PodInfo) =>
    classNamesOf(pod)
      .flatMap((name) => caches.classes.get(name)?.provisioner ?? [])
      .map(driverKey)

  /** A volume changed that is bound to or reserved for one of the pod's claims. */
  const volumeOfClaimChanged: QueueingHint<'volume'> = {
    on: 'volume',
    scope: 'pod',
    keysOfPod: (pod) => [
      ...claimKeys(pod),
      ...pod.claims.flatMap(({ key }) => caches.claims.get(key)?.spec?.volumeName ?? []).map(volumeKey),
    ],
    keysOfEvent({ next }) {
      if (!next) return []
      const claim = claimKeyOf(next)
      return [volumeKey(next.metadata.name), ...(claim === undefined ? [] : [claimKey(claim)])]
    },
    hint: (_, { next, old }) => (next && old && matchedFields(next) === matchedFields(old) ? 'skip' : 'queue'),
  }

  /** A volume of the class became available, or an available one changed. */
  const volumeAvailable: QueueingHint<'volume'> = {
    on: 'volume',
    scope: 'class',
    keysOfPod: classKeys,
    keysOfEvent: ({ next }) => (next && isAvailable(next) ? [classKey(volumeClassName(next))] : []),
    hint: (_, { next, old }) =>
      next && old && isAvailable(old) && matchedFields(next) === matchedFields(old) ? 'skip' : 'queue',
  }

  /** Volumes that were assumed for another pod are available again, because its attempt failed. */
  const volumesReleased: QueueingHint<'pluginState'> = {
    on: 'pluginState',
    scope: 'class',
    keysOfPod: classKeys,
    keysOfEvent: ({ keys }) => keys,
  }

  /** Claims that are shared with another pod are no longer assumed on its node, because its attempt failed. */
  const claimsReleased: QueueingHint<'pluginState'> = {
    on: 'pluginState',
    scope: 'pod',
    keysOfPod: claimKeys,
    keysOfEvent: ({ keys }) => keys,
  }

  const storageClassChanged: QueueingHint<'storageClass'> = {
    on: 'storageClass',
    scope: 'class',
    keysOfPod: classKeys,
    keysOfEvent: ({ next }) => (next ? [classKey(next.metadata.name)] : []),
    hint: (_, { next, old }) =>
      old && JSON.stringify(next?.allowedTopologies) === JSON.stringify(old.allowedTopologies) ? 'skip' : 'queue',
  }

  /** The driver's capacity is no longer checked. */
  const trackingDisabled: QueueingHint<'csiDriver'> = {
    on: 'csiDriver',
    scope: 'class',
    keysOfPod: driverKeys,
    keysOfEvent: ({ next, old }) =>
      old?.spec.storageCapacity === true && next?.spec.storageCapacity !== true ? [driverKey(old.metadata.name)] : [],
  }

  /** A report's capacity has increased and is sufficient for one of the claims. */
  const capacityIncreased: QueueingHint<'storageCapacity'> = {
    on: 'storageCapacity',
    scope: 'class',
    keysOfPod: classKeys,
    keysOfEvent: ({ next }) => (next ? [classKey(next.storageClassName)] : []),
    hint(pod, { next, old }, { rejection }) {
      if (!next || !rejection.reasons.has(NOT_ENOUGH_SPACE_KEY)) return 'skip'
      const newReport = parseCapacityReport(next)
      return isIncreased(newReport, old && parseCapacityReport(old)) && fitsAnyClaim(pod, newReport) ? 'queue' : 'skip'
    },
  }

  /** A capacity reservation, or a recorded failure, ended without a new report. */
  const reservationEnded: QueueingHint<'pluginState'> = {
    on: 'pluginState',
    scope: 'class',
    keysOfPod: driverKeys,
    keysOfEvent: ({ keys }) => keys,
    hint: (_pod, _event, { rejection }) => (rejection.reasons.has(NOT_ENOUGH_SPACE_KEY) ? 'queue' : 'skip'),
  }

  function isIncreased(current: CapacityReport, previous: CapacityReport | undefined): boolean {
    if (!previous) return true
    return (
      isGreater(current.limitBytes, previous.limitBytes) ||
      (hasReservations && isGreater(current.capacityBytes, previous.capacityBytes))
    )
  }

  const fitsAnyClaim = ({ claims }: PodInfo, { limitBytes, className }: CapacityReport): boolean =>
    claims.some(({ key }) => {
      const claim = caches.claims.get(key)
      if (!claim || claimClassName(claim) !== className) return false
      return limitBytes !== undefined && limitBytes >= requestedBytes(claim)
    })

  return [
    nodeChanged,
    driversChanged,
    claimChanged,
    volumeOfClaimChanged,
    volumeAvailable,
    volumesReleased,
    claimsReleased,
    storageClassChanged,
    trackingDisabled,
    capacityIncreased,
    reservationEnded,
  ]
}

/** Returns the fields that decide whether a volume matches a claim. */
const matchedFields = ({ metadata, spec, status }: Readonly<PersistentVolume>): string =>
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

const isGreater = (current: bigint | undefined, previous: bigint | undefined): boolean =>
  current !== undefined && (previous === undefined || current > previous)
