// Flags of CSI sidecars as tables: name, help, default and parser of each. The tables are in commands/provisioner and
// commands/resizer.
import { type Command, Option } from 'commander'
import { type FeatureGates, parseFeatureGates } from '../../api/feature-gates.ts'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'

export interface Flag<T> {
  /** In the syntax of commander: `--timeout <duration>`. */
  readonly flag: string
  readonly doc: string
  readonly default: string
  read(text: string, name: string): T
}

export const text = (flag: string, fallback: string, doc: string): Flag<string> => ({
  flag: `${flag} <text>`,
  doc,
  default: fallback,
  read: (given) => given,
})

export const toggle = (flag: string, fallback: boolean, doc: string): Flag<boolean> => ({
  flag: `${flag} [true|false]`,
  doc,
  default: String(fallback),
  read(given, name) {
    if (!/^(true|false)$/i.test(given)) throw wrong(name, given, 'true or false')
    return given.toLowerCase() === 'true'
  },
})

export const duration = (flag: string, fallback: string, doc: string, { min = 1 } = {}): Flag<number> => ({
  flag: `${flag} <duration>`,
  doc,
  default: fallback,
  read(given, name) {
    const ms = given === '0' ? 0 : parseDuration(given)
    if (ms === undefined || ms < min) throw wrong(name, given, 'a duration such as 500ms, 10s or 5m')
    return ms
  },
})

export const number = (flag: string, fallback: number, doc: string, { min = 1 } = {}): Flag<number> => ({
  flag: `${flag} <number>`,
  doc,
  default: String(fallback),
  read(given, name) {
    const value = Number(given)
    if (given.trim() === '' || !Number.isInteger(value) || value < min) {
      throw wrong(name, given, `a whole number of ${min} or more`)
    }
    return value
  },
})

export const rate = (flag: string, fallback: number, doc: string): Flag<number> => ({
  flag: `${flag} <rate>`,
  doc,
  default: String(fallback),
  read(given, name) {
    const value = Number(given)
    if (given.trim() === '' || !(value > 0 || value === -1)) throw wrong(name, given, 'a number above 0, or -1')
    return value
  },
})

export const wrong = (name: string, given: string, expected: string) =>
  new UsageError(`${name} ${JSON.stringify(given)}: expected ${expected}`)

export type FlagTable = Readonly<Record<string, Flag<unknown>>>
export type FlagValues<T extends FlagTable> = { [K in keyof T]: ReturnType<T[K]['read']> }

export function addFlags(command: Command, table: FlagTable): void {
  for (const { flag, doc, default: fallback } of Object.values(table)) {
    command.addOption(new Option(flag, fallback === '' ? doc : `${doc} (default: ${fallback})`))
  }
}

/** Parses what commander returns. A boolean flag without a value is true. */
export function readFlags<T extends FlagTable>(table: T, given: Readonly<Record<string, unknown>>): FlagValues<T> {
  return Object.fromEntries(
    Object.entries(table).map(([key, { flag, default: fallback, read }]) => [
      key,
      read(given[key] === undefined ? fallback : String(given[key]), flag.split(' ')[0]!),
    ]),
  ) as FlagValues<T>
}

/** `settled`: gates of the upstream sidecar that have a fixed value here. */
export function readGates(given: string, settled: Readonly<Record<string, boolean>>): FeatureGates {
  const ours = given.split(',').filter((part) => {
    const [name = '', value = ''] = part.split('=').map((piece) => piece.trim())
    if (!Object.hasOwn(settled, name)) return true
    if (value.toLowerCase() === String(settled[name])) return false
    throw new UsageError(`--feature-gates ${part.trim()}: ${name} is always ${settled[name]} here`)
  })
  try {
    return parseFeatureGates(ours.join(','))
  } catch (error) {
    throw new UsageError(`--feature-gates: ${(error as Error).message}`)
  }
}
