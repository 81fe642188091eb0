// The identity of a stateful set's pods: their names, ordinals, labels and claims. Pure.
//   pod web-2 of set web, with the claim www-web-2 of the template www
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'

export const POD_NAME_LABEL = 'statefulset.kubernetes.io/pod-name'
const POD_INDEX_LABEL = 'apps.kubernetes.io/pod-index'
export const REVISION_LABEL = 'controller-revision-hash'

export const SET_KIND = 'StatefulSet'
export const SET_API_VERSION = 'apps/v1'

/** Larger numbers in names are not ordinals, because spec.ordinals.start and spec.replicas are of type int32. */
const ORDINAL_MAX = 2 ** 32

interface MemberName {
  readonly setName: string
  readonly ordinal: number
}

/** Parses a pod's name. Returns undefined if it is not `<set>-<ordinal>`, with the ordinal in its shortest form. */
export function parseMemberName(podName: string): MemberName | undefined {
  const dash = podName.lastIndexOf('-')
  const digits = podName.slice(dash + 1)
  if (dash <= 0 || !/^(0|[1-9][0-9]{0,9})$/.test(digits)) return undefined
  const ordinal = Number(digits)
  return ordinal > ORDINAL_MAX ? undefined : { setName: podName.slice(0, dash), ordinal }
}

export const podNameOf = (set: Readonly<StatefulSet>, ordinal: number): string => `${set.metadata.name}-${ordinal}`

/** Returns the ordinal of a pod that is known to be a member. */
export const ordinalOf = ({ metadata: { name = '' } }: Readonly<Pod>): number => parseMemberName(name)?.ordinal ?? -1

export const startOrdinal = ({ spec }: Readonly<StatefulSet>): number => spec?.ordinals?.start ?? 0
export const replicasOf = ({ spec }: Readonly<StatefulSet>): number => spec?.replicas ?? 1

export const isInRange = (set: Readonly<StatefulSet>, ordinal: number): boolean =>
  ordinal >= startOrdinal(set) && ordinal < startOrdinal(set) + replicasOf(set)

export const claimNameOf = (templateName: string, set: Readonly<StatefulSet>, ordinal: number): string =>
  `${templateName}-${podNameOf(set, ordinal)}`

export const identityLabels = (podName: string, ordinal: number): Record<string, string> => ({
  [POD_NAME_LABEL]: podName,
  [POD_INDEX_LABEL]: String(ordinal),
})

/** Returns the revision that the pod was created from; empty for an adopted pod without the label. */
export const revisionOf = ({ metadata }: Readonly<Pod>): string => metadata.labels?.[REVISION_LABEL] ?? ''

export const findController = (object: {
  readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] }
}): OwnerReference | undefined => object.metadata.ownerReferences?.find(({ controller }) => controller === true)

export const setReference = ({ metadata: { name, uid } }: Readonly<Stored<StatefulSet>>): OwnerReference => ({
  apiVersion: SET_API_VERSION,
  kind: SET_KIND,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
})

export const podReference = ({ metadata: { name, uid } }: Readonly<Stored<Pod>>): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'Pod',
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
})
