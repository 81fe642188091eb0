import { describe, expect, it } from 'vitest'
import { directoryOf, localNodeNames, parseNodeNumber, sharedNodeNames } from './node-names.ts'

describe('the names of nodes', () => {
  it('contain the host and differ between data directories on a shared store', () => {
    const nameOf = sharedNodeNames({ hostname: 'Web_1.example.com', dataDir: '/data/a' })
    expect(nameOf(2)).toMatch(/^web-1-example-com-[0-9a-f]{4}-2$/)
    expect(sharedNodeNames({ hostname: 'Web_1.example.com', dataDir: '/data/a' })(2)).toBe(nameOf(2))
    expect(sharedNodeNames({ hostname: 'Web_1.example.com', dataDir: '/data/b' })(2)).not.toBe(nameOf(2))
    expect(sharedNodeNames({ hostname: '-', dataDir: '/' })(1)).toMatch(/^node-[0-9a-f]{4}-1$/)
    expect(sharedNodeNames({ hostname: 'x'.repeat(200), dataDir: '/' })(100).length).toBeLessThanOrEqual(63)
  })

  it('equal the directory names on the embedded store', () => {
    expect([1, 12].map(localNodeNames)).toEqual(['node-1', 'node-12'])
    expect(['node-1', 'node-12', 'node-0', 'node-x', 'other'].map(parseNodeNumber)).toEqual([
      1,
      12,
      undefined,
      undefined,
      undefined,
    ])
    expect(parseNodeNumber(directoryOf(7))).toBe(7)
  })
})
