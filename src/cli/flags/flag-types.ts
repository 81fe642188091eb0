// Flag types for flag tables: each flag has a name, help, a default and a parser. The tables are in sidecar.ts,
// commands/provisioner, commands/resizer and commands/sidecar.
import { type Command, Option } from 'commander'
import { type FeatureGates, parseFeatureGates } from '../../api/feature-gates.ts'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import { isIgnoredGate } from './ignored-flags.ts'

export interface Flag<T> {
  /** The flag in the syntax of commander: `--timeout <duration>`. */
  readonly flag: string
  readonly doc: string
  readonly default: string
  /** Whether the values of a repeated flag are joined with commas. By default the last one wins. */
  readonly isJoined?: boolean
  read(text: string, name: string): T
}

export const textFlag = (flag: string, defaultValue: string, doc: string): Flag<string> => ({
  flag: `${flag} <text>`,
  doc,
  default: defaultValue,
  read: (text) => text,
})

/** A list of `key:value` separated by commas. Undefined if the flag is empty. */
export const labelsFlag = (flag: string, doc: string): Flag<Readonly<Record<string, string>> | undefined> => ({
  flag: `${flag} <labels>`,
  doc,
  default: '',
  read(text, name) {
    if (text.trim() === '') return undefined
    const pairs = text.split(',').map((label) => label.split(':').map((part) => part.trim()))
    if (pairs.some((pair) => pair.length !== 2 || pair[0] === ''))
      throw invalidFlag(name, text, 'labels such as a:b,c:d')
    return Object.fromEntries(pairs)
  },
})

/** `gates` lists the names of the gates for the help. */
export const gatesFlag = (gates: string): Flag<string> => ({
  ...textFlag('--feature-gates', '', `enable or disable features: ${gates}`),
  isJoined: true,
})

export const booleanFlag = (flag: string, defaultValue: boolean, doc: string): Flag<boolean> => ({
  flag: `${flag} [true|false]`,
  doc,
  default: String(defaultValue),
  read(text, name) {
    if (!/^(true|false)$/i.test(text)) throw invalidFlag(name, text, 'true or false')
    return text.toLowerCase() === 'true'
  },
})

export const durationFlag = (flag: string, defaultValue: string, doc: string, { minMs = 1 } = {}): Flag<number> => ({
  flag: `${flag} <duration>`,
  doc,
  default: defaultValue,
  read(text, name) {
    const ms = text === '0' ? 0 : parseDuration(text)
    if (ms === undefined || ms < minMs) throw invalidFlag(name, text, 'a duration such as 500ms, 10s or 5m')
    return ms
  },
})

export const numberFlag = (flag: string, defaultValue: number, doc: string, { min = 1 } = {}): Flag<number> => ({
  flag: `${flag} <number>`,
  doc,
  default: String(defaultValue),
  read(text, name) {
    const value = Number(text)
    if (text.trim() === '' || !Number.isInteger(value) || value < min) {
      throw invalidFlag(name, text, `a whole number of ${min} or more`)
    }
    return value
  },
})

export const rateFlag = (flag: string, defaultValue: number, doc: string): Flag<number> => ({
  flag: `${flag} <rate>`,
  doc,
  default: String(defaultValue),
  read(text, name) {
    const value = Number(text)
    if (text.trim() === '' || !(value > 0 || value === -1)) throw invalidFlag(name, text, 'a number above 0, or -1')
    return value
  },
})

export const invalidFlag = (name: string, text: string, expectation: string) =>
  new UsageError(`${name} ${JSON.stringify(text)}: expected ${expectation}`)

export type FlagTable = Readonly<Record<string, Flag<unknown>>>
export type FlagValues<T extends FlagTable> = { [K in keyof T]: ReturnType<T[K]['read']> }

export function addFlags(command: Command, table: FlagTable): void {
  for (const { flag, doc, default: defaultValue, isJoined } of Object.values(table)) {
    const option = new Option(flag, defaultValue === '' ? doc : `${doc} (default: ${defaultValue})`)
    if (isJoined)
      option.argParser((value, previousText?: string) => (previousText ? `${previousText},${value}` : value))
    command.addOption(option)
  }
}

/** Parses the values that commander returns. A boolean flag without a value is true. */
export function readFlags<T extends FlagTable>(table: T, values: Readonly<Record<string, unknown>>): FlagValues<T> {
  return Object.fromEntries(
    Object.entries(table).map(([key, { flag, default: defaultValue, read }]) => [
      key,
      read(values[key] === undefined ? defaultValue : String(values[key]), flag.split(' ')[0]!),
    ]),
  ) as FlagValues<T>
}

/** Parses feature gates. `fixedGates` are gates of the upstream sidecar that cannot be changed here. */
export function readGates(text: string, fixedGates: Readonly<Record<string, boolean>>): FeatureGates {
  const otherGates = text.split(',').filter((gate) => {
    const [name = '', value = ''] = gate.split('=').map((part) => part.trim())
    if (isIgnoredGate(gate)) return false
    if (!Object.hasOwn(fixedGates, name)) return true
    if (value.toLowerCase() === String(fixedGates[name])) return false
    throw new UsageError(`--feature-gates ${gate.trim()}: ${name} is always ${fixedGates[name]} here`)
  })
  try {
    return parseFeatureGates(otherGates.join(','))
  } catch (error) {
    throw new UsageError(`--feature-gates: ${(error as Error).message}`)
  }
}
