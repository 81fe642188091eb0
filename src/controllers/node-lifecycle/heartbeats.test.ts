import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { Heartbeats } from './heartbeats.ts'

const aNode = (name: string, uid: string, lastHeartbeatTime?: string) => ({
  metadata: { name, uid, resourceVersion: '1' },
  status: { conditions: [{ type: 'Ready', status: 'True', ...(lastHeartbeatTime ? { lastHeartbeatTime } : {}) }] },
})
const aLease = (name: string, renewTime: string) => ({
  metadata: { name, uid: 'lease', resourceVersion: '1' },
  spec: { renewTime },
})

describe('Heartbeats', () => {
  it('measures silence from the observation of a new report, and ignores a repeated one', async () => {
    const clock = manualClock()
    const heartbeats = new Heartbeats(clock)
    heartbeats.observeNode(aNode('a', '1'))
    heartbeats.observeLease(aLease('a', 'first'))
    await clock.advance(5_000)
    heartbeats.observeLease(aLease('a', 'first'))
    heartbeats.observeNode(aNode('a', '1'))
    expect(heartbeats.silenceMs('a')).toBe(5_000)
    heartbeats.observeLease(aLease('a', 'second'))
    expect(heartbeats.silenceMs('a')).toBe(0)
  })

  it('monitors a node after its second heartbeat, and does not monitor a recreated node after its first', () => {
    const heartbeats = new Heartbeats(manualClock())
    heartbeats.observeNode(aNode('a', '1'))
    heartbeats.observeNode(aNode('a', '1', '2026-01-01T00:00:00Z'))
    expect(heartbeats.isMonitored('a')).toBe(false)
    heartbeats.observeNode(aNode('a', '1', '2026-01-01T00:00:10Z'))
    expect(heartbeats.isMonitored('a')).toBe(true)
    heartbeats.observeNode(aNode('a', '2', '2026-01-01T00:00:20Z'))
    expect(heartbeats.isMonitored('a')).toBe(false)
  })

  it('deletes the records of deleted nodes and leases, and monitors every node with a lease', () => {
    const actions = fc.constantFrom('node', 'lease', 'delete node', 'delete lease')
    fc.assert(
      fc.property(fc.array(fc.tuple(actions, fc.constantFrom('a', 'b'), fc.nat(3))), (steps) => {
        const heartbeats = new Heartbeats(manualClock())
        const [nodes, leases] = [new Set<string>(), new Set<string>()]
        for (const [action, name, value] of steps) {
          if (action === 'node') {
            heartbeats.observeNode(aNode(name, String(value), String(value)))
            nodes.add(name)
          }
          if (action === 'lease') {
            heartbeats.observeLease(aLease(name, String(value)))
            leases.add(name)
          }
          if (action === 'delete node') {
            heartbeats.deleteNode(name)
            nodes.delete(name)
          }
          if (action === 'delete lease') {
            heartbeats.deleteLease(name)
            leases.delete(name)
          }
        }
        expect(heartbeats.size).toBe(new Set([...nodes, ...leases]).size)
        for (const name of leases) expect(heartbeats.isMonitored(name)).toBe(true)
      }),
    )
  })
})
