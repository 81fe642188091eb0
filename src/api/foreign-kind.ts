// Declares a kind that our API server does not store, such as VolumeSnapshot: its names and metadata. Objects of it can
// be read from a server that serves it; fields beyond metadata are neither decoded nor validated here.
import { createdAtColumn, nameColumn } from './columns.ts'
import { defineKind, type Kind, type KubeObject } from './kind.ts'
import { objectMeta } from './kinds/shared/meta-schema.ts'
import { object, req } from './schema.ts'

export interface ForeignKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  readonly doc: string
}

/** T names the fields that the caller reads; nothing checks them. */
export const defineForeignKind = <T extends KubeObject = KubeObject>({
  group,
  version,
  kind,
  plural,
  namespaced,
  doc,
}: ForeignKind): Kind<T> =>
  defineKind<KubeObject>({
    group,
    versions: [version],
    kind,
    plural,
    singular: kind.toLowerCase(),
    namespaced,
    type: object(`dev.stowage.foreign.${kind}`, doc, { metadata: req(1, objectMeta, 'Standard metadata.') }),
    isForeign: true,
    nameErrors: () => [],
    validate() {},
    columns: [nameColumn, createdAtColumn],
    deleteReturnsObject: false,
  }) as Kind<T>
