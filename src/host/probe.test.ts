import { describe, expect, it } from 'vitest'
import { parseCapabilities } from './probe.ts'

const statusWith = (effectiveMask: string) =>
  `Name:\tnode\nCapPrm:\t000001ffffffffff\nCapEff:\t${effectiveMask}\nCapBnd:\t000001ffffffffff\n`

describe('parseCapabilities', () => {
  it.each([
    ['all capabilities of root', '000001ffffffffff', { sysAdmin: true, sysResource: true }],
    ['capabilities without CAP_SYS_RESOURCE', '000001fffeffffff', { sysAdmin: true, sysResource: false }],
    ['capabilities of a container', '00000000a80425fb', { sysAdmin: false, sysResource: false }],
    ['no capabilities', '0000000000000000', { sysAdmin: false, sysResource: false }],
  ])('parses %s', (_, effectiveMask, capabilities) => {
    expect(parseCapabilities(statusWith(effectiveMask))).toEqual(capabilities)
  })

  it('returns no capabilities if the kernel does not report them', () => {
    expect(parseCapabilities('Name:\tnode\n')).toEqual({ sysAdmin: false, sysResource: false })
  })
})
