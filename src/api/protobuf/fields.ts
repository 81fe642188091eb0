// Indexes the fields of a declared type by their protobuf numbers. Fields that are inlined in JSON but belong to an embedded
// message in protobuf (see `within` in ../schema.ts) are grouped under the number of that message.
import type { Field, ObjectType } from '../schema.ts'

type WireField =
  | { readonly is: 'field'; readonly name: string; readonly field: Field }
  | { readonly is: 'embedded'; readonly fields: WireFields }

/** The fields by number, in ascending order. */
export type WireFields = ReadonlyMap<number, WireField>

const fieldsByType = new WeakMap<ObjectType, WireFields>()

export function wireFieldsOf(type: ObjectType): WireFields {
  let fields = fieldsByType.get(type)
  if (!fields) {
    fields = collectFields(type)
    fieldsByType.set(type, fields)
  }
  return fields
}

/** Returns whether protobuf distinguishes an empty value of the field from an absent one. */
export const isPointer = (field: Field): boolean => field.keepsEmpty && !field.required

function collectFields(type: ObjectType): WireFields {
  const topLevelFields: [number, WireField][] = []
  const embeddedFields = new Map<number, [number, WireField][]>()
  for (const [name, field] of Object.entries(type.fields)) {
    if (field.tag === 0) continue
    const numberedField: [number, WireField] = [field.tag, { is: 'field', name, field }]
    if (field.within === undefined) topLevelFields.push(numberedField)
    else embeddedFields.set(field.within, [...(embeddedFields.get(field.within) ?? []), numberedField])
  }
  for (const [number, fields] of embeddedFields)
    topLevelFields.push([number, { is: 'embedded', fields: sortByNumber(fields) }])
  return sortByNumber(topLevelFields)
}

const sortByNumber = (fields: readonly [number, WireField][]): WireFields =>
  new Map([...fields].sort(([a], [b]) => a - b))
