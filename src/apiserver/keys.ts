// Store keys of objects: GROUP/RESOURCE/[NAMESPACE/]NAME, with the core group written as "core".
// Key order is list order: by namespace, then by name. No other file spells a key.
import type { Kind } from '../api/kind.ts'

/** The properties of a kind that determine its keys. */
export type Collection = Pick<Kind, 'group' | 'plural' | 'namespaced'>

export const collectionPrefix = (kind: Collection, namespace = ''): string => {
  const prefix = `${kind.group || 'core'}/${kind.plural}/`
  return kind.namespaced && namespace ? `${prefix}${namespace}/` : prefix
}

export const objectKey = (kind: Collection, namespace: string, name: string): string =>
  `${collectionPrefix(kind, namespace)}${name}`

/** Heartbeats and events change often and are read rarely: the store keeps their history only briefly. */
export const BRIEF_PREFIXES = ['core/events/', 'coordination.k8s.io/leases/']
