import { describe, expect, it } from 'vitest'
import { createTopologyMemory } from './topology-memory.ts'

describe('createTopologyMemory', () => {
  it('resets the topology of a claim if its node changes, unless the request must be repeated', () => {
    const memory = createTopologyMemory()
    const first = memory.of('uid', 'node-a', false)
    first.keys = ['zone']
    expect(memory.of('uid', 'node-a', false)).toBe(first)
    expect(memory.of('uid', 'node-b', true)).toBe(first)
    expect(memory.of('uid', 'node-b', false).keys).toBeUndefined()
    memory.forget('uid')
    expect(memory.size).toBe(0)
  })

  it('limits the number of claims', () => {
    const memory = createTopologyMemory()
    for (let i = 0; i < 10_050; i++) memory.of(`uid-${i}`, undefined, false)
    expect(memory.size).toBe(10_000)
  })
})
