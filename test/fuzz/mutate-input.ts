// Damages valid input: changes values of an object, or corrupts its text. Also lists hostile strings, numbers and YAML bodies.
import type { Dice } from './dice.ts'

/** Strings that often cause bugs. */
export const HOSTILE_STRINGS: readonly string[] = [
  '',
  ' ',
  '-',
  'A',
  '-a',
  'a-',
  'a..b',
  '.',
  '..',
  '../../etc/passwd',
  'a/b',
  'a/b/c',
  '/',
  '%2e%2e',
  '%',
  'a\nb',
  'a\u0000b',
  '\u0000',
  '\u202egnp',
  '\ufeffbom',
  'é',
  '💥',
  '\ud800',
  'a'.repeat(63),
  'a'.repeat(64),
  'a'.repeat(253),
  'a'.repeat(254),
  'x'.repeat(5_000),
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'true',
  '0',
  '-1',
  '-1Gi',
  '1.5',
  '1.5Gi',
  '0.1n',
  '0.0000000001',
  '1e3',
  '1E',
  '1Ei',
  '9999999999999999999E',
  '1e400',
  '1e999999999',
  '1e-999999999',
  '9'.repeat(400),
  'NaN',
  'Infinity',
  '0x10',
  '1,5',
  ' 1Gi',
  '1 Gi',
  '1gi',
  'kubernetes.io/x',
  'example.com/x',
  'storage',
  'iops',
  'throughput',
  'cpu',
  '2026-01-01T00:00:00Z',
  '2026-01-01T00:00:00.123456789+02:00',
  '2026-13-45T99:99:99Z',
  '9999-12-31T23:59:59-23:59',
  '0001-01-01T00:00:00Z',
  'Bound',
  'Retain',
  'Exists',
  '{{7*7}}',
  "'; DROP TABLE volumes;--",
]

export const HOSTILE_NUMBERS: readonly number[] = [
  0,
  -0,
  1,
  -1,
  1.5,
  2,
  600,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32 + 1,
  2 ** 53,
  2 ** 63,
  1e21,
  1e308,
  -1e308,
  5e-324,
]

export const hostileValue = (dice: Dice): unknown => {
  switch (dice.int(9)) {
    case 0:
      return null
    case 1:
      return dice.pick([true, false])
    case 2:
      return []
    case 3:
      return {}
    case 4:
      return dice.pick(HOSTILE_NUMBERS)
    case 5:
      return nestValue(dice.pick([3, 60, 300]), dice.oneIn(2))
    case 6:
      return [dice.pick(HOSTILE_STRINGS), dice.pick(HOSTILE_STRINGS)]
    case 7:
      return { [dice.pick(HOSTILE_STRINGS)]: dice.pick(HOSTILE_STRINGS) }
    default:
      return dice.pick(HOSTILE_STRINGS)
  }
}

const nestValue = (depth: number, asLists: boolean): unknown => {
  let value: unknown = 'deep'
  for (let i = 0; i < depth; i++) value = asLists ? [value] : { a: value }
  return value
}

/** Returns a copy with up to `count` changes. */
export function mutate<T>(dice: Dice, original: T, count = 1): T {
  let result = copyOf(original)
  for (let i = 0; i < count; i++) result = mutateOnce(dice, result) as T
  return result
}

function mutateOnce(dice: Dice, root: unknown): unknown {
  const locations = locationsIn(root)
  if (locations.length === 0) return hostileValue(dice)
  const { parent, key } = dice.pick(locations)
  const value = parent[key]
  if (dice.oneIn(2) && createHostileValueOfType(dice, value) !== undefined) {
    setProperty(parent, key, createHostileValueOfType(dice, value)) // a value of the same type usually passes the decoder and reaches validation
    return root
  }
  switch (dice.int(10)) {
    case 0:
      if (Array.isArray(parent)) parent.splice(Number(key), 1)
      else delete parent[key]
      break
    case 1:
      setProperty(parent, key, null)
      break
    case 2:
      if (Array.isArray(parent)) parent.push(copyOf(value))
      else setProperty(parent, dice.pick(HOSTILE_STRINGS), copyOf(value))
      break
    case 3:
      if (!Array.isArray(parent))
        setProperty(
          parent,
          dice.pick(['unknownField', 'Spec', '__proto__', 'constructor', 'toString']),
          hostileValue(dice),
        )
      break
    case 4:
      setProperty(parent, key, Array.isArray(value) ? value[0] : [value])
      break
    case 5:
      setProperty(
        parent,
        key,
        typeof value === 'number' ? String(value) : typeof value === 'string' ? value.length : { value },
      )
      break
    case 6:
      if (typeof value === 'string') setProperty(parent, key, value + dice.pick(HOSTILE_STRINGS))
      else setProperty(parent, key, hostileValue(dice))
      break
    case 7: {
      const source = dice.pick(locations) // a value of another field
      setProperty(parent, key, copyOf(source.parent[source.key]))
      break
    }
    default:
      setProperty(parent, key, hostileValue(dice))
  }
  return root
}

const createHostileValueOfType = (dice: Dice, value: unknown): unknown => {
  if (typeof value === 'string') return dice.pick(HOSTILE_STRINGS)
  if (typeof value === 'number') return dice.pick(HOSTILE_NUMBERS)
  if (typeof value === 'boolean') return !value
  return undefined
}

/** Sets a property, including `__proto__`, which an assignment would not create. */
const setProperty = (parent: any, key: string | number, value: unknown): void =>
  void Object.defineProperty(parent, key, { value, enumerable: true, writable: true, configurable: true })

interface Location {
  readonly parent: any
  readonly key: string
}

export function locationsIn(root: unknown, locations: Location[] = [], depth = 0): Location[] {
  if (typeof root !== 'object' || root === null || depth > 12) return locations
  for (const key of Object.keys(root)) {
    locations.push({ parent: root, key })
    locationsIn((root as any)[key], locations, depth + 1)
  }
  return locations
}

export const copyOf = <T>(value: T): T => (value === undefined ? value : JSON.parse(JSON.stringify(value)))

/** Returns damaged or unusual bytes in place of JSON text. */
export function damage(dice: Dice, text: string): Uint8Array {
  const position = dice.int(text.length + 1)
  const insert = (inserted: string | Uint8Array) =>
    Buffer.concat([Buffer.from(text.slice(0, position)), Buffer.from(inserted), Buffer.from(text.slice(position))])
  const insertAfterBrace = (inserted: string) => Buffer.from(text.replace('{', `{${inserted}`))
  switch (dice.int(18)) {
    case 0:
      return Buffer.from(text.slice(0, position))
    case 1:
      return insert(Buffer.from([dice.pick([0xff, 0xc0, 0x80, 0xfe])]))
    case 2:
      return Buffer.from(dice.pick(['[', '{"a":']).repeat(10_000))
    case 3:
      return Buffer.from(`${'['.repeat(10_000)}${']'.repeat(10_000)}`)
    case 4:
      return insertAfterBrace('"metadata":{"name":"twice"},')
    case 5:
      return insertAfterBrace('"spec":null,"spec":{},')
    case 6:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)])
    case 7:
      return new Uint8Array()
    case 8:
      return insert('\u0000')
    case 9:
      return Buffer.from(
        dice.pick([
          'null',
          'true',
          '0',
          '"text"',
          '[]',
          '{}',
          'undefined',
          '{]',
          '//',
          '\n',
          '-',
          '1e',
          '"\\u12"',
          '"\\x"',
        ]),
      )
    case 10:
      return Buffer.from(`${text}${text}`)
    case 11:
      return insertAfterBrace('"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},')
    case 12:
      return Buffer.from(text.replace(/:(\d+|"[^"]*")/, ':1e999'))
    case 13:
      return Buffer.from(text, 'utf16le')
    case 14:
      return Buffer.from(text.replaceAll('"', "'"))
    case 15:
      return Buffer.concat([Buffer.from([0x6b, 0x38, 0x73, 0x00]), Buffer.from(text)]) // the prefix of protobuf bodies
    case 16:
      return insertAfterBrace(`"junk":"${'y'.repeat(100_000)}",`)
    default:
      return insert(dice.pick(['}', ']', ',', '"', '\\', '\n', '{', ':']))
  }
}

const YAML_BOMB = `a: &a [x,x,x,x,x,x,x,x,x]
${[...'bcdefghi'].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[i]}`).join(',')}]`).join('\n')}
`

export const YAML_BODIES: readonly string[] = [
  YAML_BOMB,
  'a: [',
  '!!js/function "x"',
  '!<tag:yaml.org,2002:binary> aGk=',
  '? {a: b}\n: c',
  '&a [*a]',
  '&a {x: *a}',
  '---\na: 1\n---\nb: 2\n',
  '- '.repeat(5_000),
  `${'{a: '.repeat(2_000)}1${'}'.repeat(2_000)}`,
  'metadata: {name: x}\nmetadata: {name: y}\n',
  '"\\ud800"',
  '%YAML 9.9\n---\na',
  '\t- a',
  'a: *missing',
  '<<: {a: 1}\nb: 2',
  '\u0000',
  '2026-01-01',
  '.inf',
  '0o17',
]
