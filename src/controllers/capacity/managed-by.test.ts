import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { managedBy, nodeNamedBy } from './managed-by.ts'

const node = (characters: number) => `node${'a'.repeat(characters - 4)}`

describe('the managed-by label', () => {
  it.each([
    ['the whole cluster', undefined, 'external-provisioner'],
    ['a node', 'node01', 'external-provisioner-node01'],
    ['a node that just fits', node(42), `external-provisioner-${node(42)}`],
    ['one character more', node(43), `external-p-53f40b57-${node(43)}`],
    ['the longest that is still spelled out', node(52), `e-53f40b57-${node(52)}`],
    ['one character more than that', node(53), 'external-provisioner-a3607ff1'],
    ['a very long name', node(67), 'external-provisioner-df38e37f'],
  ])('CAP-7 equals that of external-provisioner for %s', (_, name, label) => {
    expect(managedBy(name)).toBe(label)
  })

  it('CAP-7 is always a valid label value', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$/), (name) => {
        expect(managedBy(name)).toMatch(/^[a-z0-9][a-z0-9.-]{0,61}[a-z0-9]$/)
      }),
    )
  })

  it('CAP-9 contains the node name unless it is too long', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?$/), (name) => {
        const named = nodeNamedBy(managedBy(name))
        if (name.length <= 52) expect(named?.name).toBe(name)
        else expect(named?.mayBeHash).toBe(true)
      }),
    )
  })

  it.each(['external-provisioner', '', 'me', 'external-provisioner-', 'my-53f40b57-node', `x-53f40b57-${node(52)}`])(
    'CAP-9 %j is of no single node',
    (label) => {
      expect(nodeNamedBy(label)).toBeUndefined()
    },
  )
})
