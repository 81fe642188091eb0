// A kind that our own server does not serve: just enough of it to name one, to read it and to let it be.
import { createdAtColumn, nameColumn } from './columns.ts'
import { defineKind, type Kind } from './kind.ts'
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

export const defineForeignKind = ({ group, version, kind, plural, namespaced, doc }: ForeignKind): Kind<any> =>
  defineKind<any>({
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
    deleteAnswersObject: false,
  })
