// Property test: the rules of a kind never throw for a well-typed object. Objects are generated from the schemas, with
// names and amounts that are likely to cause trouble.
import fc, { type Arbitrary } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Kind } from '../kind.ts'
import type { ObjectType, Type } from '../schema.ts'
import { configMapKind } from './config-map/config-map.ts'
import { eventKind } from './event/event.ts'
import { eventsEventKind } from './event/events-event.ts'
import { row, tryCreate, tryStatus, tryUpdate } from './kind.fixture.ts'
import { leaseKind } from './lease/lease.ts'
import { limitRangeKind } from './limit-range/limit-range.ts'
import { namespaceKind } from './namespace/namespace.ts'
import { nodeKind } from './node/node.ts'
import { podKind } from './pod/pod.ts'
import { resourceQuotaKind } from './resource-quota/resource-quota.ts'
import { secretKind } from './secret/secret.ts'
import { serviceAccountKind } from './service-account/service-account.ts'

const KINDS: readonly Kind[] = [
  configMapKind,
  eventKind,
  eventsEventKind,
  leaseKind,
  limitRangeKind,
  namespaceKind,
  nodeKind,
  podKind,
  resourceQuotaKind,
  secretKind,
  serviceAccountKind,
]

describe('rules under hostile objects', () => {
  it.each(KINDS.map((kind) => [`${kind.kind} (${kind.group || 'core'})`, kind] as const))(
    'SYS-10 %s: validates every well-typed object without throwing',
    (_name, kind) => {
      const bodies = objectsOf(kind.type, 6)
      fc.assert(
        fc.property(bodies, bodies, (body, other) => {
          const { object, errors } = tryCreate(kind, body)
          expect(errors.length).toBeLessThanOrEqual(100)
          tryUpdate(kind, object, other)
          if (kind.status) tryStatus(kind, object, (other as { status?: object }).status ?? {})
          row(kind, object)
          for (const field of Object.values(kind.selectableFields ?? {})) expect(field(object)).toBeTypeOf('string')
          kind.viewOf?.toStored(object)
        }),
        { numRuns: 150 },
      )
    },
    60_000,
  )
})

const NASTY_TEXTS = [
  '',
  '..',
  '/',
  'a/b/c',
  '__proto__',
  'constructor',
  'toString',
  ' ',
  'ünï',
  '\u0000',
  'x'.repeat(300),
]
const NASTY_KEYS = [
  '__proto__',
  'constructor',
  'cpu',
  'storage',
  'iops',
  'requests.throughput',
  'hugepages-2Mi',
  'a/b',
  '',
]

const text = fc.oneof(fc.constantFrom(...NASTY_TEXTS), fc.string({ maxLength: 20 }))
const key = fc.oneof(fc.constantFrom(...NASTY_KEYS), fc.string({ maxLength: 10 }))
const amount = fc.constantFrom('0', '-1', '1', '10', '500m', '1Gi', '1e3', '9223372036854775807', '1n', '-0.5Mi')

function valuesOf(type: Type, depth: number): Arbitrary<unknown> {
  switch (type.is) {
    case 'object':
      return objectsOf(type, depth)
    case 'list':
      return fc.array(valuesOf(type.item, depth - 1), { maxLength: 3 })
    case 'map':
      return fc.dictionary(key, valuesOf(type.value, depth - 1), { maxKeys: 4, noNullPrototype: true })
    case 'string':
      return type.values ? fc.oneof(fc.constantFrom(...type.values), text) : text
    case 'boolean':
      return fc.boolean()
    case 'int32':
      return fc.oneof(fc.constantFrom(0, 1, -1), fc.integer())
    case 'int64':
      return fc.oneof(fc.constantFrom(0, 1, -1), fc.maxSafeInteger())
    case 'intOrString':
      return fc.oneof(fc.integer(), text)
    case 'quantity':
      return amount
    case 'time':
    case 'microTime':
      return fc.constantFrom('2026-01-02T03:04:05Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z')
    case 'bytes':
      return fc.base64String({ maxLength: 20 })
    default:
      return fc.constant({})
  }
}

const cache = new Map<string, Arbitrary<object>>()

/** Below `depth` only required fields are generated. */
function objectsOf(type: ObjectType, depth: number): Arbitrary<object> {
  const cached = cache.get(`${depth} ${type.name}`)
  if (cached) return cached
  const fields = Object.entries(type.fields).filter(([, field]) => depth > 0 || field.required)
  const values = Object.fromEntries(fields.map(([name, field]) => [name, valuesOf(field.type, depth - 1)]))
  const required = fields.filter(([, field]) => field.required).map(([name]) => name)
  const made = fc.record(values, { requiredKeys: required, noNullPrototype: true }) as Arbitrary<object>
  cache.set(`${depth} ${type.name}`, made)
  return made
}
