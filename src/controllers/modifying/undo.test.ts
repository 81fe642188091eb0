import { describe, expect, it } from 'vitest'
import {
  ATTRIBUTES_ANNOTATION,
  attributesAtCreation,
  confirmedAttributesOf,
  extendUndo,
  knownValues,
  serializeConfirmedAttributes,
  serializeUndo,
  UNDO_ANNOTATION,
  undoOf,
} from './undo.ts'

const aClaim = (annotation: string) => ({ metadata: { annotations: { [UNDO_ANNOTATION]: annotation } } }) as never
const aVolume = (annotation: string, volumeAttributesClassName?: string) =>
  ({ metadata: { annotations: { [ATTRIBUTES_ANNOTATION]: annotation } }, spec: { volumeAttributesClassName } }) as never

describe('the undo record', () => {
  it('VAC-7 has the previous value of every attribute that changes, or null', () => {
    const newAttributes = { iops: '1000', tier: 'gold', zone: '1' }
    expect(extendUndo(newAttributes, {}, { iops: '500', zone: '1' })).toEqual({ iops: '500', tier: null })
  })

  it('VAC-7 keeps the values recorded first', () => {
    expect(extendUndo({ iops: '9' }, { iops: '500' }, { iops: '1000' })).toEqual({ iops: '500' })
    expect(extendUndo({ iops: '9' }, { iops: null }, { iops: '1000' })).toEqual({ iops: null })
  })

  it('VAC-7 is stored on the claim, and known values can be restored', () => {
    const undo = { tier: null, iops: '500' }
    expect(undoOf(aClaim(serializeUndo(undo)!))).toEqual(undo)
    expect(knownValues(undo)).toEqual({ iops: '500' })
    expect(serializeUndo({})).toBeNull()
  })

  it.each(['', '{', '[]', '7', 'null', '{"iops":5}'])('VAC-7 ignores the invalid annotation %j', (annotation) => {
    expect(undoOf(aClaim(annotation))).toBeUndefined()
    expect(confirmedAttributesOf(aVolume(annotation))).toBeUndefined()
  })
})

describe('the confirmed attributes', () => {
  it("VAC-7 apply only to the volume's current class", () => {
    const annotation = serializeConfirmedAttributes('gold', { zone: '1', iops: '500' }, { iops: '1000' })
    expect(confirmedAttributesOf(aVolume(annotation, 'gold'))).toEqual({ zone: '1', iops: '1000' })
    expect(confirmedAttributesOf(aVolume(annotation, 'silver')), 'another program has changed it since').toBeUndefined()
    const annotationWithoutClass = serializeConfirmedAttributes(undefined, {}, { iops: '1' })
    expect(confirmedAttributesOf(aVolume(annotationWithoutClass))).toEqual({ iops: '1' })
  })

  it('VAC-7 are reduced to the attributes sent last if they exceed the size limit', () => {
    const previousAttributes = { old: 'x'.repeat(20_000) }
    expect(serializeConfirmedAttributes('gold', previousAttributes, { iops: '1' })).toBe(
      '{"class":"gold","attributes":{"iops":"1"}}',
    )
  })

  it("PIO-2 at creation come from the storage class, with the driver's keys and units", () => {
    expect(
      attributesAtCreation({
        'provisioned-iops-on-create': '300',
        'provisioned-throughput-on-create': '100MiB/s',
        type: 'ssd',
        'csi.storage.k8s.io/fstype': 'xfs',
      }),
    ).toEqual({ iops: '300', throughput: '100', type: 'ssd' })
    expect(attributesAtCreation({ 'provisioned-throughput-on-create': 'lots' })).toEqual({ throughput: 'lots' })
    expect(attributesAtCreation(undefined)).toEqual({})
  })
})
