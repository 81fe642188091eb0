import { describe, expect, it } from 'vitest'
import { parseCapabilities } from './probe.ts'

const statusWith = (effective: string) =>
  `Name:\tnode\nCapPrm:\t000001ffffffffff\nCapEff:\t${effective}\nCapBnd:\t000001ffffffffff\n`

describe('capabilities', () => {
  it.each([
    ['all of root’s', '000001ffffffffff', { sysAdmin: true, sysResource: true }],
    ['root without CAP_SYS_RESOURCE', '000001fffeffffff', { sysAdmin: true, sysResource: false }],
    ['those of a container', '00000000a80425fb', { sysAdmin: false, sysResource: false }],
    ['none', '0000000000000000', { sysAdmin: false, sysResource: false }],
  ])('SYS-6 parses %s', (_, effective, expected) => {
    expect(parseCapabilities(statusWith(effective))).toEqual(expected)
  })

  it('SYS-6 assumes no capabilities if the kernel reports none', () => {
    expect(parseCapabilities('Name:\tnode\n')).toEqual({ sysAdmin: false, sysResource: false })
  })
})
