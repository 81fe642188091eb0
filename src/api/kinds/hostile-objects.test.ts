// Tests that rules and columns do not throw for well-typed objects, which are generated from the schemas with edge cases as
// names and amounts.
import fc, { type Arbitrary } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Kind } from '../kind.ts'
import type { ObjectType, Type } from '../schema.ts'
import { configMapKind } from './config-map/config-map.ts'
import { eventKind } from './event/event.ts'
import { eventsEventKind } from './event/events-event.ts'
import { cellsOf, tryCreate, tryStatus, tryUpdate } from './kind.fixture.ts'
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

describe('the rules and columns of', () => {
  it.each(KINDS.map((kind) => [`${kind.kind} (${kind.group || 'core'})`, kind] as const))(
    'SYS-10 %s do not throw for any well-typed object',
    (_name, kind) => {
      const bodyArbitrary = anyObject(kind.type, 6)
      fc.assert(
        fc.property(bodyArbitrary, bodyArbitrary, (body, otherBody) => {
          const { object, errors } = tryCreate(kind, body)
          expect(errors.length).toBeLessThanOrEqual(100)
          tryUpdate(kind, object, otherBody)
          if (kind.status) tryStatus(kind, object, (otherBody as { status?: object }).status ?? {})
          cellsOf(kind, object)
          for (const field of Object.values(kind.selectableFields ?? {}))
            expect(field(object) ?? '').toBeTypeOf('string')
          kind.viewOf?.toStored(object)
        }),
        { numRuns: 150 },
      )
    },
    60_000,
  )
})

const EDGE_CASE_TEXTS = [
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
const EDGE_CASE_KEYS = [
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

const anyText = fc.oneof(fc.constantFrom(...EDGE_CASE_TEXTS), fc.string({ maxLength: 20 }))
const anyKey = fc.oneof(fc.constantFrom(...EDGE_CASE_KEYS), fc.string({ maxLength: 10 }))
const anyAmount = fc.constantFrom('0', '-1', '1', '10', '500m', '1Gi', '1e3', '9223372036854775807', '1n', '-0.5Mi')

function anyValue(type: Type, depth: number): Arbitrary<unknown> {
  switch (type.is) {
    case 'object':
      return anyObject(type, depth)
    case 'list':
      return fc.array(anyValue(type.item, depth - 1), { maxLength: 3 })
    case 'map':
      return fc.dictionary(anyKey, anyValue(type.value, depth - 1), { maxKeys: 4, noNullPrototype: true })
    case 'string':
      return type.values ? fc.oneof(fc.constantFrom(...type.values), anyText) : anyText
    case 'boolean':
      return fc.boolean()
    case 'int32':
      return fc.oneof(fc.constantFrom(0, 1, -1), fc.integer())
    case 'int64':
      return fc.oneof(fc.constantFrom(0, 1, -1), fc.maxSafeInteger())
    case 'intOrString':
      return fc.oneof(fc.integer(), anyText)
    case 'quantity':
      return anyAmount
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

/** Generates objects of a type. Objects that are nested deeper than `depth` levels have only required fields. */
function anyObject(type: ObjectType, depth: number): Arbitrary<object> {
  const cachedArbitrary = cache.get(`${depth} ${type.name}`)
  if (cachedArbitrary) return cachedArbitrary
  const fields = Object.entries(type.fields).filter(([, field]) => depth > 0 || field.required)
  const values = Object.fromEntries(fields.map(([name, field]) => [name, anyValue(field.type, depth - 1)]))
  const requiredKeys = fields.filter(([, field]) => field.required).map(([name]) => name)
  const arbitrary = fc.record(values, { requiredKeys, noNullPrototype: true }) as Arbitrary<object>
  cache.set(`${depth} ${type.name}`, arbitrary)
  return arbitrary
}
