// Formats values as YAML.
import type { JsonValue } from './json-value.ts'
import { loadYaml } from './load-yaml.ts'

/** Formats a value with sorted keys. Quotes strings that YAML 1.1 parsers would parse as other types. */
export const printYaml = async (value: JsonValue): Promise<string> => (await loadYamlPrinter())(value)

/** Loads a function that formats a value as `printYaml` does, but synchronously, for callers that format many values. */
export async function loadYamlPrinter(): Promise<(value: JsonValue) => string> {
  const { stringify } = await loadYaml()
  return (value) => stringify(value, PRINT_OPTIONS)
}

/** Maps and lists with more entries than this are formatted in slices. */
const SLICE_ENTRIES = 250

/** Formats a value as `printYaml` does, and calls `pause` between slices of long maps and lists. */
export async function printYamlInSlices(
  root: JsonValue,
  pause: () => Promise<void>,
  sliceEntries = SLICE_ENTRIES,
): Promise<string> {
  const print = await loadYamlPrinter()
  const isLong = (value: JsonValue): value is JsonValue & object => entryCount(value, sliceEntries) > sliceEntries

  const printValue = async (value: JsonValue): Promise<string> => {
    if (!isLong(value)) return print(value)
    await pause() // splitting and sorting also block the event loop
    let text = ''
    for (const part of partsOf(value, sliceEntries)) {
      text += Array.isArray(part) ? await printItems(part) : await printEntries(part)
      await pause()
    }
    return text
  }
  const printItems = async (items: JsonValue[]): Promise<string> =>
    isLong(items) && isLong(items[0]!) ? indent(await printValue(items[0])).replace(/^ {2}/, '- ') : print(items)
  const printEntries = async (entries: { [key: string]: JsonValue }): Promise<string> => {
    const [key, value] = Object.entries(entries)[0]!
    const head = print({ [key]: null })
    if (!isLong(entries) || !isLong(value) || !/^[^\n]*: null\n$/.test(head)) return print(entries)
    const text = await printValue(value)
    return `${head.replace(/ null\n$/, '\n')}${Array.isArray(value) ? text : indent(text)}`
  }
  return printValue(root)
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ')

/** Splits a map or list: entries that are long themselves are parts of their own. The keys of maps are sorted. */
function* partsOf(value: object, sliceEntries: number): Generator<JsonValue[] | { [key: string]: JsonValue }> {
  const isList = Array.isArray(value)
  const entries = Object.entries(value) as [string, JsonValue][]
  if (!isList) entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const partOf = (part: [string, JsonValue][]) => (isList ? part.map(([, item]) => item) : Object.fromEntries(part))
  let part: [string, JsonValue][] = []
  let count = 0
  for (const entry of entries) {
    const inner = entryCount(entry[1], sliceEntries)
    if (part.length > 0 && count + inner >= sliceEntries) {
      yield partOf(part)
      part = []
      count = 0
    }
    part.push(entry)
    count += 1 + inner
  }
  if (part.length > 0) yield partOf(part)
}

/** Returns the number of entries in a value, at all levels; stops counting above `max`. */
function entryCount(value: JsonValue, max: number): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  for (const inner of Object.values(value)) {
    count += 1 + entryCount(inner as JsonValue, max - count)
    if (count > max) break
  }
  return count
}

const PRINT_OPTIONS = {
  sortMapEntries: true,
  indentSeq: false,
  lineWidth: 0,
  aliasDuplicateObjects: false,
  compat: 'yaml-1.1',
} as const
