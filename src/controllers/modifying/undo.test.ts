import { describe, expect, it } from 'vitest'
import {
  ATTRIBUTES,
  confirmedOf,
  confirmedText,
  knownValues,
  provisionedWith,
  UNDO,
  undoFor,
  undoOf,
  undoText,
} from './undo.ts'

const aClaim = (text: string) => ({ metadata: { annotations: { [UNDO]: text } } }) as never
const aVolume = (text: string, volumeAttributesClassName?: string) =>
  ({ metadata: { annotations: { [ATTRIBUTES]: text } }, spec: { volumeAttributesClassName } }) as never

describe('the undo record', () => {
  it('VAC-7 has the previous value of every attribute that changes, or null', () => {
    const sending = { iops: '1000', tier: 'gold', zone: '1' }
    expect(undoFor(sending, {}, { iops: '500', zone: '1' })).toEqual({ iops: '500', tier: null })
  })

  it('VAC-7 keeps the values recorded first', () => {
    expect(undoFor({ iops: '9' }, { iops: '500' }, { iops: '1000' })).toEqual({ iops: '500' })
    expect(undoFor({ iops: '9' }, { iops: null }, { iops: '1000' })).toEqual({ iops: null })
  })

  it('VAC-7 is stored on the claim, and known values can be restored', () => {
    const undo = { tier: null, iops: '500' }
    expect(undoOf(aClaim(undoText(undo)!))).toEqual(undo)
    expect(knownValues(undo)).toEqual({ iops: '500' })
    expect(undoText({})).toBeNull()
  })

  it.each(['', '{', '[]', '7', 'null', '{"iops":5}'])('VAC-7 ignores the invalid annotation %j', (text) => {
    expect(undoOf(aClaim(text))).toBeUndefined()
    expect(confirmedOf(aVolume(text))).toBeUndefined()
  })
})

describe('the confirmed attributes', () => {
  it('VAC-7 apply only to the volume’s current class', () => {
    const text = confirmedText('gold', { zone: '1', iops: '500' }, { iops: '1000' })
    expect(confirmedOf(aVolume(text, 'gold'))).toEqual({ zone: '1', iops: '1000' })
    expect(confirmedOf(aVolume(text, 'silver')), 'another program has changed it since').toBeUndefined()
    const none = confirmedText(undefined, {}, { iops: '1' })
    expect(confirmedOf(aVolume(none))).toEqual({ iops: '1' })
  })

  it('VAC-7 are reduced to those sent last beyond the size limit', () => {
    const before = { old: 'x'.repeat(20_000) }
    expect(confirmedText('gold', before, { iops: '1' })).toBe('{"class":"gold","attributes":{"iops":"1"}}')
  })

  it('PIO-2 at creation come from the storage class, in the driver’s form', () => {
    expect(
      provisionedWith({
        'provisioned-iops-on-create': '300',
        'provisioned-throughput-on-create': '100MiB/s',
        type: 'ssd',
        'csi.storage.k8s.io/fstype': 'xfs',
      }),
    ).toEqual({ iops: '300', throughput: '100', type: 'ssd' })
    expect(provisionedWith({ 'provisioned-throughput-on-create': 'lots' })).toEqual({ throughput: 'lots' })
    expect(provisionedWith(undefined)).toEqual({})
  })
})
