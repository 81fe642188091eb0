// Finds problems that prevent an apply of a decoded configuration: list items with the same key or value, or without any key
// field.
import type { DeclaredValue } from '../schema.ts'
import { describePath, fieldElement, valueElement } from './path-element.ts'
import type { Shape } from './shape.ts'

/** Returns one message with a path per problem. */
export function findConfigProblems(shape: Shape, config: DeclaredValue, path: readonly string[] = []): string[] {
  switch (shape.is) {
    case 'object':
      return shape.fields.flatMap(({ name, element, shape: inner }) =>
        config[name] === undefined ? [] : findConfigProblems(inner(), config[name], [...path, element]),
      )
    case 'map':
      return Object.keys(config).flatMap((key) =>
        findConfigProblems(shape.value, config[key], [...path, fieldElement(key)]),
      )
    case 'set':
      return findDuplicates(config.map(valueElement), path)
    case 'items': {
      const keys: string[] = config.map(shape.keyOf)
      const missingKeyProblems = keys.includes('k:{}')
        ? [`${describePath(path)}: an item omits all key fields of the list`]
        : []
      return [
        ...missingKeyProblems,
        ...findDuplicates(keys, path),
        ...config.flatMap((item: DeclaredValue, index: number) =>
          findConfigProblems(shape.item, item, [...path, keys[index]!]),
        ),
      ]
    }
    default:
      return []
  }
}

function findDuplicates(keys: readonly string[], path: readonly string[]): string[] {
  const distinctKeys = new Set<string>()
  const duplicateKeys = new Set<string>()
  for (const key of keys) {
    if (distinctKeys.has(key)) duplicateKeys.add(key)
    else distinctKeys.add(key)
  }
  return [...distinctKeys]
    .filter((key) => duplicateKeys.has(key))
    .map((key) => `${describePath(path)}: duplicate entries for key ${describePath([key])}`)
}
