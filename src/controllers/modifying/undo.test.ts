import { describe, expect, it } from 'vitest'
import { ATTRIBUTES, confirmedOf, confirmedText, madeWith, putBack, UNDO, undoFor, undoOf, undoText } from './undo.ts'

const aClaim = (text: string) => ({ metadata: { annotations: { [UNDO]: text } } }) as never
const aVolume = (text: string, volumeAttributesClassName?: string) =>
  ({ metadata: { annotations: { [ATTRIBUTES]: text } }, spec: { volumeAttributesClassName } }) as never

describe('what it takes to go back', () => {
  it('VAC-7 is every attribute that is about to change, as it was, or as not known', () => {
    const sending = { iops: '1000', tier: 'gold', zone: '1' }
    expect(undoFor(sending, {}, { iops: '500', zone: '1' })).toEqual({ iops: '500', tier: null })
  })

  it('VAC-7 is what was recorded first: later tries start from what earlier ones may have left', () => {
    expect(undoFor({ iops: '9' }, { iops: '500' }, { iops: '1000' })).toEqual({ iops: '500' })
    expect(undoFor({ iops: '9' }, { iops: null }, { iops: '1000' })).toEqual({ iops: null })
  })

  it('VAC-7 survives on the claim, and can be put back where it is known', () => {
    const undo = { tier: null, iops: '500' }
    expect(undoOf(aClaim(undoText(undo)!))).toEqual(undo)
    expect(putBack(undo)).toEqual({ iops: '500' })
    expect(undoText({})).toBeNull()
  })

  it.each(['', '{', '[]', '7', 'null', '{"iops":5}'])(
    'VAC-7 %j that someone wrote by hand is as if it were not there',
    (text) => {
      expect(undoOf(aClaim(text))).toBeUndefined()
      expect(confirmedOf(aVolume(text))).toBeUndefined()
    },
  )
})

describe('what a volume remembers', () => {
  it('VAC-7 is what the driver confirmed, for the class the volume is said to have', () => {
    const text = confirmedText('gold', { zone: '1', iops: '500' }, { iops: '1000' })
    expect(confirmedOf(aVolume(text, 'gold'))).toEqual({ zone: '1', iops: '1000' })
    expect(confirmedOf(aVolume(text, 'silver')), 'another program has changed it since').toBeUndefined()
    const none = confirmedText(undefined, {}, { iops: '1' })
    expect(confirmedOf(aVolume(none))).toEqual({ iops: '1' })
  })

  it('VAC-7 is bounded: beyond it, only what was sent last', () => {
    const before = { old: 'x'.repeat(20_000) }
    expect(confirmedText('gold', before, { iops: '1' })).toBe('{"class":"gold","attributes":{"iops":"1"}}')
  })

  it('PIO-2 what its storage class made it with, in the words of drivers', () => {
    expect(
      madeWith({
        'provisioned-iops-on-create': '300',
        'provisioned-throughput-on-create': '100MiB/s',
        type: 'ssd',
        'csi.storage.k8s.io/fstype': 'xfs',
      }),
    ).toEqual({ iops: '300', throughput: '100', type: 'ssd' })
    expect(madeWith({ 'provisioned-throughput-on-create': 'lots' })).toEqual({ throughput: 'lots' })
    expect(madeWith(undefined)).toEqual({})
  })
})
