// Converts objects to a Table, as requested by `kubectl get`, and to PartialObjectMetadata, which its rows contain.
import { cellOf } from '../../api/columns.ts'
import type { Column, KubeObject } from '../../api/kind.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { Resource } from '../resources.ts'

export type IncludeObject = 'None' | 'Metadata' | 'Object'

export interface TableOptions {
  readonly metaVersion: string
  readonly include: IncludeObject
  readonly nowMs: number
}

export interface TableMeta {
  readonly resourceVersion?: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

/** In a list (`isList`), cells may depend on the other rows, for example to mark the default class. */
export const tableOf = (
  resource: Resource,
  objects: readonly AnyObject[],
  meta: TableMeta,
  options: TableOptions & { isList: boolean; hasColumns: boolean },
): unknown => ({
  ...tableHead(resource, meta, options),
  rows: objects.map(rowPrinter(resource, options, () => (options.isList ? objects : undefined))),
})

export const tableHead = (
  { kind }: Resource,
  metadata: TableMeta,
  { metaVersion, hasColumns }: Pick<TableOptions, 'metaVersion'> & { hasColumns: boolean },
) => ({
  kind: 'Table',
  apiVersion: `meta.k8s.io/${metaVersion}`,
  metadata,
  columnDefinitions: hasColumns ? kind.columns.map(columnDefinition) : null,
})

/** Returns a function that converts an object to its row. `siblings` returns the objects of all rows of a list. */
export function rowPrinter(
  resource: Resource,
  options: TableOptions,
  siblings: () => readonly KubeObject[] | undefined,
): (object: AnyObject) => unknown {
  const context = {
    nowMs: options.nowMs,
    get siblings() {
      return siblings()
    },
  }
  return (object) => ({
    cells: resource.kind.columns.map((column) => cellOf(column, object, context)),
    object: rowObject(resource, object, options),
  })
}

const columnDefinition = (column: Column<AnyObject>) => ({
  name: column.name,
  type: column.type,
  format: column.format ?? '',
  description: column.doc,
  priority: column.wide ? 1 : 0,
})

function rowObject(resource: Resource, object: KubeObject, { include, metaVersion }: TableOptions): unknown {
  if (include === 'None') return undefined
  if (include === 'Object') return { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...object }
  return partialOf(object, metaVersion)
}

export const partialOf = (object: KubeObject, metaVersion: string) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${metaVersion}`,
  metadata: object.metadata,
})
