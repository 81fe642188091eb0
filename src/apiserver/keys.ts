// Where objects live in the store: GROUP/RESOURCE/[NAMESPACE/]NAME, the core group written as "core".
// Key order is list order: by namespace, then by name.
import type { Kind } from '../api/kind.ts'

export const collectionPrefix = (kind: Kind, namespace = ''): string => {
  const prefix = `${kind.group || 'core'}/${kind.plural}/`
  return kind.namespaced && namespace ? `${prefix}${namespace}/` : prefix
}

export const objectKey = (kind: Kind, namespace: string, name: string): string =>
  `${collectionPrefix(kind, kind.namespaced ? namespace : '')}${name}`

export const namespaceKey = (namespace: string): string => `core/namespaces/${namespace}`

/** Heartbeats and events change often and are read rarely: their history is kept only briefly. */
export const BRIEF_PREFIXES = ['core/events/', 'coordination.k8s.io/leases/']
