// The row of a pod: its node and the claims that it uses.
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { ConsoleObject } from '../../protocol.ts'
import { intern, type NamedRow, timeOf } from './row.ts'

export interface PodRow extends NamedRow {
  readonly namespace: string
  readonly node: string | undefined
  readonly phase: string
  /** Names of the claims, including those of generic ephemeral volumes. */
  readonly claims: readonly string[]
}

const NO_CLAIMS: readonly string[] = []

export function projectPod(object: ConsoleObject): PodRow {
  const { metadata, spec, status } = object as unknown as Pod
  const { name } = object.metadata
  const claims = (spec?.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim, ephemeral }) =>
    persistentVolumeClaim ? [persistentVolumeClaim.claimName] : ephemeral ? [`${name}-${volume}`] : [],
  )
  return {
    uid: object.metadata.uid,
    name,
    namespace: intern(object.metadata.namespace ?? ''),
    createdMs: timeOf(metadata.creationTimestamp),
    deletedMs: timeOf(metadata.deletionTimestamp),
    node: intern(spec?.nodeName || undefined),
    phase: intern(status?.phase ?? 'Pending'),
    claims: claims.length === 0 ? NO_CLAIMS : claims,
  }
}

/** Whether the pod still uses its claims. */
export const isUsingClaims = ({ phase }: PodRow): boolean => phase !== 'Succeeded' && phase !== 'Failed'
