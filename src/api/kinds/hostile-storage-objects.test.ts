// Tests that the rules and columns of the storage kinds do not throw for generated well-typed objects.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cellOf } from '../columns.ts'
import type { Kind } from '../kind.ts'
import type { ObjectType, Scalar, Type } from '../schema.ts'
import { volumeAttributesClassKind } from './attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from './claim/claim.ts'
import { csiDriverKind } from './csi-driver/csi-driver.ts'
import { csiNodeKind } from './csi-node/csi-node.ts'
import { csiStorageCapacityKind } from './csi-storage-capacity/csi-storage-capacity.ts'
import { storageClassKind } from './storage-class/storage-class.ts'
import { tryCreate, tryStatus, tryUpdate } from './try-write.fixture.ts'
import { persistentVolumeKind } from './volume/volume.ts'
import { volumeAttachmentKind } from './volume-attachment/volume-attachment.ts'

const KINDS: readonly Kind[] = [
  persistentVolumeClaimKind,
  persistentVolumeKind,
  storageClassKind,
  volumeAttributesClassKind,
  csiDriverKind,
  csiNodeKind,
  csiStorageCapacityKind,
  volumeAttachmentKind,
]

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    'toString',
    'storage',
    'iops',
    'throughput',
    '..',
    '/',
    'a/b/c',
    'x'.repeat(300),
  ),
)

const SCALARS: Record<Scalar, fc.Arbitrary<unknown>> = {
  string: anyText,
  boolean: fc.boolean(),
  int32: fc.integer(),
  int64: fc.maxSafeInteger(),
  double: fc.double({ noNaN: true }),
  quantity: fc.constantFrom('0', '-1', '1n', '1.5', '10Gi', '9E', '1e300', '-9Ei', '100', '1Mi'),
  time: fc.constantFrom('2026-01-01T00:00:00Z', '0001-01-01T00:00:00Z'),
  microTime: fc.constantFrom('2026-01-01T00:00:00.000000Z'),
  bytes: fc.constantFrom('', 'AAAA'),
  intOrString: fc.oneof(fc.integer(), anyText),
}

function anyValue(type: Type): fc.Arbitrary<unknown> {
  switch (type.is) {
    case 'object':
      return anyObject(type)
    case 'list':
      return fc.array(anyValue(type.item), { maxLength: 3 })
    case 'map':
      return fc
        .array(fc.tuple(anyText, anyValue(type.value)), { maxLength: 4 })
        .map((entries) => Object.fromEntries(entries))
    case 'json':
      return fc.jsonValue()
    default:
      return type.is === 'string' && type.values ? fc.oneof(fc.constantFrom(...type.values), anyText) : SCALARS[type.is]
  }
}

const anyObject = (type: ObjectType): fc.Arbitrary<unknown> =>
  fc.record(Object.fromEntries(Object.entries(type.fields).map(([name, field]) => [name, anyValue(field.type)])), {
    requiredKeys: [],
  })

describe('the rules and columns of storage kinds', () => {
  for (const kind of KINDS) {
    const bodyArbitrary = anyObject(kind.type)
    const anyGates = fc.constantFrom(
      '',
      'VolumeAttributesClass=false,VolumeProvisionedIO=false,RecoverExpansionFailure=false',
    )

    it(`SYS-10 do not throw for any well-typed ${kind.kind}`, () => {
      fc.assert(
        fc.property(bodyArbitrary, bodyArbitrary, anyGates, (body, otherBody, gates) => {
          const { object } = tryCreate(kind, body, { gates })
          tryUpdate(kind, object, (draft) => Object.assign(draft, otherBody), { gates })
          tryStatus(kind, object, (draft) => Object.assign(draft, otherBody), { gates })
          for (const column of kind.columns) {
            expect(cellOf(column, object, { nowMs: 0, siblings: [object] })).not.toBeUndefined()
          }
          for (const select of Object.values(kind.selectableFields ?? {}))
            expect(select(object) ?? '').toBeTypeOf('string')
        }),
        { numRuns: 200 },
      )
    })
  }

  it('SYS-10 return 100 errors for a StorageClass with 1000 invalid topologies', () => {
    const allowedTopologies = Array.from({ length: 1000 }, () => ({}))
    const { errors } = tryCreate(storageClassKind, { metadata: { name: 'x' }, provisioner: 'p', allowedTopologies })
    expect(errors).toHaveLength(100)
  })
})
