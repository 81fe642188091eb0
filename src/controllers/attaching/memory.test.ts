import { describe, expect, it } from 'vitest'
import { Memory } from './memory.ts'

describe('Memory', () => {
  it('SYS-18 lists the volumes that wait for a node, until they wait for something else', () => {
    const memory = new Memory()
    const [left, capacity] = [
      { what: 'node', nodeName: 'left' } as const,
      { what: 'capacity', nodeName: 'left' } as const,
    ]
    memory.waitFor('v1', [left])
    memory.waitFor('v2', [left, capacity])
    expect(memory.waitingFor(left)).toEqual(['v1', 'v2'])
    memory.waitFor('v1', [])
    expect(memory.waitingFor(left)).toEqual(['v2'])
    expect(memory.waitingFor(capacity)).toEqual(['v2'])
  })

  it('SYS-18 removes the entry of a volume when it is empty', () => {
    const memory = new Memory()
    const creation = { name: 'csi-1', driver: 'disks', handle: 'h', nodeName: 'left' }
    memory.beginCreation('v1', creation)
    memory.tidy('v1')
    expect([...memory.creationsOn(creation)]).toEqual(['csi-1'])
    memory.endCreation('v1')
    memory.tidy('v1')
    expect([memory.size, memory.creationsOn(creation).size]).toEqual([0, 0])
  })
})
