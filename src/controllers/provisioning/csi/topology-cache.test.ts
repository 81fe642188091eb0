import { describe, expect, it } from 'vitest'
import { createTopologyCache } from './topology-cache.ts'

describe('createTopologyCache', () => {
  it("resets a claim's topology if its node changes, unless the request must be repeated", () => {
    const cache = createTopologyCache()
    const topology = cache.getOrCreate('uid', 'node-a', { mustRepeat: false })
    topology.keys = ['zone']
    expect(cache.getOrCreate('uid', 'node-a', { mustRepeat: false })).toBe(topology)
    expect(cache.getOrCreate('uid', 'node-b', { mustRepeat: true })).toBe(topology)
    expect(cache.getOrCreate('uid', 'node-b', { mustRepeat: false }).keys).toBeUndefined()
    cache.delete('uid')
    expect(cache.size).toBe(0)
  })

  it('limits the number of claims', () => {
    const cache = createTopologyCache()
    for (let i = 0; i < 10_050; i++) cache.getOrCreate(`uid-${i}`, undefined, { mustRepeat: false })
    expect(cache.size).toBe(10_000)
  })
})
