import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classifyContent, parseBlkid } from './device-content.ts'

const EXT4 = 'DEVNAME=/dev/loop0\nUUID=b9db6056-f470\nLABEL=my\\ data\nBLOCK_SIZE=4096\nTYPE=ext4\nUSAGE=filesystem\n'

describe('classifyContent', () => {
  it('returns a file system with its UUID and label if blkid finds one', () => {
    expect(classifyContent({ code: 0, stdout: EXT4, isStartZero: false })).toEqual({
      is: 'filesystem',
      type: 'ext4',
      uuid: 'b9db6056-f470',
      label: 'my data',
    })
  })

  it('returns blank only if blkid finds nothing and the start is zero', () => {
    expect(classifyContent({ code: 2, stdout: '', isStartZero: true })).toEqual({ is: 'blank' })
    expect(classifyContent({ code: 2, stdout: '', isStartZero: false })).toMatchObject({ is: 'unclear' })
  })

  it.each([
    ['two signatures', { code: 8, stdout: '', isStartZero: false }, 'several conflicting signatures'],
    ['a partition table', { code: 0, stdout: 'PTTYPE=gpt\n', isStartZero: false }, 'a partition table (gpt)'],
    [
      'a member of a RAID',
      { code: 0, stdout: 'TYPE=linux_raid_member\nUSAGE=raid\n', isStartZero: true },
      'linux_raid',
    ],
  ])('returns unclear for %s', (_, probe, reason) => {
    expect(classifyContent(probe)).toEqual({ is: 'unclear', message: expect.stringContaining(reason) })
  })

  it('never returns blank if blkid exits with 0, regardless of its output', () => {
    fc.assert(
      fc.property(fc.string(), fc.boolean(), (stdout, isStartZero) => {
        expect(classifyContent({ code: 0, stdout, isStartZero }).is).not.toBe('blank')
      }),
    )
  })
})

describe('parseBlkid', () => {
  it('accepts an equals sign in a value', () => {
    expect(parseBlkid('LABEL=a=b\nnonsense\n')).toEqual(new Map([['LABEL', 'a=b']]))
  })
})
