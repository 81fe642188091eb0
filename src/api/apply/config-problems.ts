// Finds the reasons why a well-typed configuration cannot be applied: list items with the same key, or without any key field.
import type { DeclaredValue } from '../schema.ts'
import { describePath, fieldElement, valueElement } from './path-element.ts'
import type { Shape } from './shape.ts'

/** One message with its path per problem; empty if the configuration can be applied. */
export function configProblems(shape: Shape, config: DeclaredValue, path: readonly string[] = []): string[] {
  switch (shape.is) {
    case 'object':
      return shape.fields.flatMap(({ name, element, shape: inner }) =>
        config[name] === undefined ? [] : configProblems(inner(), config[name], [...path, element]),
      )
    case 'map':
      return Object.keys(config).flatMap((key) =>
        configProblems(shape.value, config[key], [...path, fieldElement(key)]),
      )
    case 'set':
      return repeated(config.map(valueElement), path)
    case 'items': {
      const keys: string[] = config.map(shape.keyOf)
      const nameless = keys.includes('k:{}') ? [`${describePath(path)}: an item omits all key fields of the list`] : []
      return [
        ...nameless,
        ...repeated(keys, path),
        ...config.flatMap((item: DeclaredValue, index: number) =>
          configProblems(shape.item, item, [...path, keys[index]!]),
        ),
      ]
    }
    default:
      return []
  }
}

const repeated = (keys: readonly string[], path: readonly string[]): string[] =>
  keys
    .filter((key, index) => keys.indexOf(key) === index && keys.indexOf(key, index + 1) > 0)
    .map((key) => `${describePath(path)}: duplicate entries for key ${describePath([key])}`)
