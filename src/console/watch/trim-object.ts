// Prepares an object for the page: removes the managed fields and the last applied configuration, which make up half of
// many objects and which no screen shows.
import type { ConsoleObject } from '../protocol.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** `type` is added to objects of a list, which have neither apiVersion nor kind. */
export function trimObject(
  object: ConsoleObject,
  type: { readonly apiVersion?: string; readonly kind?: string } = {},
): ConsoleObject {
  const { managedFields: _, ...metadata } = object.metadata
  const annotations = metadata.annotations as Readonly<Record<string, string>> | undefined
  if (annotations && LAST_APPLIED in annotations) {
    const { [LAST_APPLIED]: __, ...others } = annotations
    return { ...type, ...object, metadata: { ...metadata, annotations: others } as ConsoleObject['metadata'] }
  }
  return { ...type, ...object, metadata: metadata as ConsoleObject['metadata'] }
}
