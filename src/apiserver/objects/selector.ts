// Converts the label and field selectors of a list or watch to a predicate on stored objects.
import { EVERYTHING, matchesFields, matchesLabels } from '../../api/selectors.ts'
import { badRequest } from '../../api/status-error.ts'
import type { ListOptions } from '../http/options.ts'
import type { Resource } from '../resources.ts'
import type { AnyObject } from './object-deps.ts'
import type { Shared } from './stored-object.ts'

/** Returns undefined if all objects match. Throws 400 for a field that the kind does not support in selectors. */
export function selectorOf(
  resource: Resource,
  { labelSelector, fieldSelector }: Pick<ListOptions, 'labelSelector' | 'fieldSelector'>,
): ((object: Shared) => boolean) | undefined {
  const fieldReaders = selectableFields(resource)
  for (const { field } of fieldSelector) {
    if (!fieldReaders.has(field)) {
      throw badRequest(
        `field label not supported: "${field}"; ${resource.kind.plural} can be selected by ${[...fieldReaders.keys()].join(', ')}`,
      )
    }
  }
  const matchesAllLabels =
    labelSelector === EVERYTHING || (labelSelector.requirements.length === 0 && !labelSelector.matchesNothing)
  if (matchesAllLabels && fieldSelector.length === 0) return undefined
  return (object) => {
    if (!matchesAllLabels && !matchesLabels(labelSelector, object.metadata.labels)) return false
    if (fieldSelector.length === 0) return true
    const view = resource.kind.viewOf?.fromStored(object) ?? object
    return matchesFields(fieldSelector, (field) => fieldReaders.get(field)!(view))
  }
}

type FieldReader = (object: AnyObject) => string | undefined

const fieldReadersCache = new WeakMap<Resource, ReadonlyMap<string, FieldReader>>()

function selectableFields(resource: Resource): ReadonlyMap<string, FieldReader> {
  let fields = fieldReadersCache.get(resource)
  if (!fields) {
    fields = new Map<string, FieldReader>([
      ['metadata.name', (object) => object.metadata.name],
      ...(resource.kind.namespaced
        ? [['metadata.namespace', (object: AnyObject) => object.metadata.namespace] as const]
        : []),
      ...Object.entries(resource.kind.selectableFields ?? {}),
    ])
    fieldReadersCache.set(resource, fields)
  }
  return fields
}
