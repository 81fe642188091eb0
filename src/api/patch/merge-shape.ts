// Derives the rules for strategic-merge.ts from the schema of a type.
import type { Field, ObjectType, Type } from '../schema.ts'
import type { MergeField, MergeShape } from './strategic-merge.ts'

const shapes = new WeakMap<ObjectType, MergeShape>()

export function mergeShapeOf(type: ObjectType): MergeShape {
  let shape = shapes.get(type)
  if (!shape) {
    const fields = new Map<string, MergeField>()
    shape = {
      findField(name) {
        const declaredField = Object.hasOwn(type.fields, name) ? type.fields[name] : undefined
        if (!declaredField) return undefined
        const field = fields.get(name) ?? mergeFieldOf(declaredField)
        fields.set(name, field)
        return field
      },
    }
    shapes.set(type, shape)
  }
  return shape
}

function mergeFieldOf({ merge, type }: Field): MergeField {
  const innerType = objectTypeOf(type)
  return { merge, shape: innerType && mergeShapeOf(innerType) }
}

/** Returns the object type of a field or of the items of its list. */
const objectTypeOf = (type: Type): ObjectType | undefined =>
  type.is === 'object' ? type : type.is === 'list' && type.item.is === 'object' ? type.item : undefined
