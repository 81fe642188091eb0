// The fields of a declared type by their protobuf numbers. Fields that are inlined in JSON but belong to an embedded message
// in protobuf (see `within` in ../schema.ts) are grouped under the number of that message.
import type { Field, ObjectType } from '../schema.ts'

type WireField =
  | { readonly is: 'field'; readonly name: string; readonly field: Field }
  | { readonly is: 'embedded'; readonly fields: WireFields }

/** By number, ascending. */
export type WireFields = ReadonlyMap<number, WireField>

const cache = new WeakMap<ObjectType, WireFields>()

export function wireFieldsOf(type: ObjectType): WireFields {
  let fields = cache.get(type)
  if (!fields) {
    fields = gather(type)
    cache.set(type, fields)
  }
  return fields
}

/** Whether protobuf distinguishes an empty value of the field from an absent one. */
export const isPointer = (field: Field): boolean => field.keepsEmpty && !field.required

function gather(type: ObjectType): WireFields {
  const own: [number, WireField][] = []
  const embedded = new Map<number, [number, WireField][]>()
  for (const [name, field] of Object.entries(type.fields)) {
    if (field.tag === 0) continue
    const wire: [number, WireField] = [field.tag, { is: 'field', name, field }]
    if (field.within === undefined) own.push(wire)
    else embedded.set(field.within, [...(embedded.get(field.within) ?? []), wire])
  }
  for (const [number, fields] of embedded) own.push([number, { is: 'embedded', fields: ascending(fields) }])
  return ascending(own)
}

const ascending = (fields: readonly [number, WireField][]): WireFields => new Map([...fields].sort(([a], [b]) => a - b))
