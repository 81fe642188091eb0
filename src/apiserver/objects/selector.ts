// Label and field selectors of a list or watch, as a predicate on stored objects.
import { EVERYTHING, matchesFields, matchesLabels } from '../../api/selectors.ts'
import { badRequest } from '../../api/status-error.ts'
import type { ListOptions } from '../http/options.ts'
import type { Resource } from '../resources.ts'
import type { AnyObject } from './object-deps.ts'
import type { Shared } from './stored-object.ts'

/** Undefined if everything matches. Throws 400 for a field that the kind cannot be selected by. */
export function selectorOf(
  resource: Resource,
  { labels, fields }: Pick<ListOptions, 'labels' | 'fields'>,
): ((object: Shared) => boolean) | undefined {
  const selectable = selectableFields(resource)
  for (const { field } of fields) {
    if (!selectable.has(field)) {
      throw badRequest(
        `field label not supported: "${field}"; ${resource.kind.plural} can be selected by ${[...selectable.keys()].join(', ')}`,
      )
    }
  }
  const anyLabels = labels === EVERYTHING || (labels.requirements.length === 0 && !labels.nothing)
  if (anyLabels && fields.length === 0) return undefined
  return (object) => {
    if (!anyLabels && !matchesLabels(labels, object.metadata.labels)) return false
    if (fields.length === 0) return true
    const face = resource.kind.viewOf?.fromStored(object) ?? object
    return matchesFields(fields, (field) => selectable.get(field)!(face))
  }
}

const selectableCache = new WeakMap<Resource, ReadonlyMap<string, (object: AnyObject) => string>>()

function selectableFields(resource: Resource): ReadonlyMap<string, (object: AnyObject) => string> {
  let fields = selectableCache.get(resource)
  if (!fields) {
    fields = new Map<string, (object: AnyObject) => string>([
      ['metadata.name', (object) => object.metadata.name ?? ''],
      ...(resource.kind.namespaced
        ? [['metadata.namespace', (object: AnyObject) => object.metadata.namespace ?? ''] as const]
        : []),
      ...Object.entries(resource.kind.selectableFields ?? {}),
    ])
    selectableCache.set(resource, fields)
  }
  return fields
}
