// Builds the store keys of objects: GROUP/RESOURCE/[NAMESPACE/]NAME, with the core group written as "core".
// The order of keys is the order of lists: by namespace, then by name.
import type { Kind } from '../api/kind.ts'
import { JOURNAL_PREFIX } from './timeline/journal-keys.ts'

/** The properties of a kind that determine its keys. */
export type Collection = Pick<Kind, 'group' | 'plural' | 'namespaced'>

export const collectionPrefix = (kind: Collection, namespace = ''): string => {
  const prefix = `${kind.group || 'core'}/${kind.plural}/`
  return kind.namespaced && namespace ? `${prefix}${namespace}/` : prefix
}

export const objectKey = (kind: Collection, namespace: string, name: string): string =>
  `${collectionPrefix(kind, namespace)}${name}`

/** Describes the object of a key in messages: `configmaps "a" in namespace "default"`. Returns other keys unchanged. */
export function describeKey(key: string): string {
  const [group, plural, ...names] = key.split('/')
  const name = names.pop()
  if (!group || !plural || !name || names.length > 1) return key
  const resource = group === 'core' ? plural : `${plural}.${group}`
  return `${resource} ${JSON.stringify(name)}${names[0] ? ` in namespace ${JSON.stringify(names[0])}` : ''}`
}

export const EVENTS_PREFIX = 'core/events/'

/** Events, leases and the journal change often, so the store keeps only a short history of them. */
export const BRIEF_HISTORY_PREFIXES = [EVENTS_PREFIX, 'coordination.k8s.io/leases/', JOURNAL_PREFIX]
