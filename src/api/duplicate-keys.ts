// Finds duplicate keys in a JSON text. JSON.parse keeps only the last value of each.
import { endOfString, skipWhitespace } from './json-text.ts'

/** Further duplicates are not reported. */
export const DUPLICATE_KEYS_MAX = 100

/** Returns the paths of duplicate keys in a valid JSON text: `['spec.x', 'spec.containers[0].name']`. */
export function findDuplicateKeys(text: string): string[] {
  const duplicates = new Set<string>()
  const levels: Level[] = []
  for (let i = 0; i < text.length && duplicates.size < DUPLICATE_KEYS_MAX; i++) {
    const level = levels.at(-1)
    switch (text[i]) {
      case '{':
        levels.push({ keys: new Set(), current: '' })
        break
      case '[':
        levels.push({ keys: undefined, current: 0 })
        break
      case '}':
      case ']':
        levels.pop()
        break
      case ',':
        if (typeof level?.current === 'number') level.current += 1
        break
      case '"': {
        const end = endOfString(text, i)
        if (level?.keys && isKey(text, end)) {
          level.current = JSON.parse(text.slice(i, end)) as string
          if (level.keys.has(level.current)) duplicates.add(pathOf(levels))
          level.keys.add(level.current)
        }
        i = end - 1
      }
    }
  }
  return [...duplicates]
}

/** An object or list that is open at the current position. */
interface Level {
  /** The keys before the current position; undefined for a list. */
  readonly keys: Set<string> | undefined
  /** The current key or index. */
  current: string | number
}

const pathOf = (levels: readonly Level[]): string =>
  levels
    .map(({ current }) => (typeof current === 'number' ? `[${current}]` : `.${current}`))
    .join('')
    .replace(/^\./, '')

const isKey = (text: string, end: number): boolean => text[skipWhitespace(text, end)] === ':'
