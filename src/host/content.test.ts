import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classifyContent, parseBlkid } from './content.ts'

const EXT4 = 'DEVNAME=/dev/loop0\nUUID=b9db6056-f470\nLABEL=my\\ data\nBLOCK_SIZE=4096\nTYPE=ext4\nUSAGE=filesystem\n'

describe('the content of a device', () => {
  it('SYS-6 is a file system if blkid finds one, with UUID and label', () => {
    expect(classifyContent({ code: 0, stdout: EXT4, isStartZero: false })).toEqual({
      is: 'filesystem',
      type: 'ext4',
      uuid: 'b9db6056-f470',
      label: 'my data',
    })
  })

  it('SYS-6 is blank only if blkid finds nothing and the start is zero', () => {
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
  ])('SYS-6 is unclear for %s', (_, seen, because) => {
    expect(classifyContent(seen)).toEqual({ is: 'unclear', because: expect.stringContaining(because) })
  })

  it('SYS-6 is never blank if blkid exited with 0, regardless of its output', () => {
    fc.assert(
      fc.property(fc.string(), fc.boolean(), (stdout, isStartZero) => {
        expect(classifyContent({ code: 0, stdout, isStartZero }).is).not.toBe('blank')
      }),
    )
  })

  it('SYS-6 may have an equals sign in its label', () => {
    expect(parseBlkid('LABEL=a=b\nnonsense\n')).toEqual(new Map([['LABEL', 'a=b']]))
  })
})
