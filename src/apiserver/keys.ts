// Builds the store keys of objects: GROUP/RESOURCE/[NAMESPACE/]NAME, with the core group written as "core".
// The order of keys is the order of lists: by namespace, then by name.
import type { Kind } from '../api/kind.ts'

/** The properties of a kind that determine its keys. */
export type Collection = Pick<Kind, 'group' | 'plural' | 'namespaced'>

export const collectionPrefix = (kind: Collection, namespace = ''): string => {
  const prefix = `${kind.group || 'core'}/${kind.plural}/`
  return kind.namespaced && namespace ? `${prefix}${namespace}/` : prefix
}

export const objectKey = (kind: Collection, namespace: string, name: string): string =>
  `${collectionPrefix(kind, namespace)}${name}`

/** Events and leases change often and are rarely watched, so the store keeps only a short history of them. */
export const BRIEF_HISTORY_PREFIXES = ['core/events/', 'coordination.k8s.io/leases/']
