// Declares a kind that clients cannot write to this API server, such as VolumeSnapshot. A client can read objects of
// the kind from a server that stores it. The objects are not validated.
import { createdAtColumn, nameColumn } from './columns.ts'
import { defineKind, type Kind, type KubeObject } from './kind.ts'
import { objectMeta } from './kinds/shared/meta-schema.ts'
import { type Fields, object, req } from './schema.ts'

export interface ForeignKind {
  readonly group: string
  readonly versions: readonly string[]
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  readonly doc: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly isDiscoverable?: true
  /** Fields in addition to metadata. */
  readonly fields?: Fields
}

/** Declares a foreign kind. T has the fields that the caller reads; they are not validated. */
export const defineForeignKind = <T extends KubeObject = KubeObject>({
  group,
  versions,
  kind,
  plural,
  namespaced,
  doc,
  fields = {},
  ...discovery
}: ForeignKind): Kind<T> =>
  defineKind<KubeObject>({
    group,
    versions,
    kind,
    plural,
    singular: kind.toLowerCase(),
    namespaced,
    type: object(`dev.stowage.foreign.${kind}`, doc, { metadata: req(1, objectMeta, 'Standard metadata.'), ...fields }),
    isForeign: true,
    ...discovery,
    nameErrors: () => [],
    validate() {},
    columns: [nameColumn, createdAtColumn],
    deleteReturnsObject: false,
  }) as Kind<T>
