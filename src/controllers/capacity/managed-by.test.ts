import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { managedBy, parseManagedBy } from './managed-by.ts'

const aNodeName = (characters: number) => `node${'a'.repeat(characters - 4)}`

describe('the managed-by label', () => {
  it.each([
    ['the whole cluster', undefined, 'external-provisioner'],
    ['a node', 'node01', 'external-provisioner-node01'],
    ['a node name of 42 characters', aNodeName(42), `external-provisioner-${aNodeName(42)}`],
    ['a node name of 43 characters', aNodeName(43), `external-p-53f40b57-${aNodeName(43)}`],
    ['a node name of 52 characters', aNodeName(52), `e-53f40b57-${aNodeName(52)}`],
    ['a node name of 53 characters', aNodeName(53), 'external-provisioner-a3607ff1'],
    ['a node name of 67 characters', aNodeName(67), 'external-provisioner-df38e37f'],
  ])('CAP-7 equals the label of external-provisioner for %s', (_, name, label) => {
    expect(managedBy(name)).toBe(label)
  })

  it('CAP-7 is a valid label value for any node name', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$/), (name) => {
        expect(managedBy(name)).toMatch(/^[a-z0-9][a-z0-9.-]{0,61}[a-z0-9]$/)
      }),
    )
  })

  it('CAP-9 is parsed to the node name, or to a possible hash if the name has more than 52 characters', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?$/), (name) => {
        const parsedNode = parseManagedBy(managedBy(name))
        if (name.length <= 52) expect(parsedNode?.name).toBe(name)
        else expect(parsedNode?.mayBeHash).toBe(true)
      }),
    )
  })

  it.each([
    'external-provisioner',
    '',
    'me',
    'external-provisioner-',
    'my-53f40b57-node',
    `x-53f40b57-${aNodeName(52)}`,
  ])('CAP-9 is not parsed to a node if it is %j', (label) => {
    expect(parseManagedBy(label)).toBeUndefined()
  })
})
