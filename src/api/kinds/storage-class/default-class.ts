// Selects the default StorageClass: the newest class that is annotated as default, and the first by name if several have
// the same age.

import { annotationOf } from '../shared/class-names.ts'
import type { StorageClass } from './storage-class-schema.ts'

const DEFAULT_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]

export const isMarkedDefault = (storageClass: StorageClass): boolean =>
  DEFAULT_ANNOTATIONS.some((annotation) => annotationOf(storageClass, annotation) === 'true')

export function findDefaultClass(classes: Iterable<StorageClass>): StorageClass | undefined {
  let best: StorageClass | undefined
  for (const candidate of classes) {
    if (isMarkedDefault(candidate) && (!best || isPreferred(candidate, best))) best = candidate
  }
  return best
}

function isPreferred({ metadata: a }: StorageClass, { metadata: b }: StorageClass): boolean {
  const [createdA, createdB] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''] // RFC 3339 sorts as text
  return createdA === createdB ? (a.name ?? '') < (b.name ?? '') : createdA > createdB
}
