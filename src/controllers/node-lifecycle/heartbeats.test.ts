import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { Heartbeats } from './heartbeats.ts'

const aNode = (name: string, uid: string, lastHeartbeatTime?: string) => ({
  metadata: { name, uid },
  status: { conditions: [{ type: 'Ready', status: 'True', ...(lastHeartbeatTime ? { lastHeartbeatTime } : {}) }] },
})
const aLease = (name: string, renewTime: string) => ({ metadata: { name, uid: 'lease' }, spec: { renewTime } })

describe('heartbeats', () => {
  it('SYS-18 a new sign counts from when it is seen, the same sign seen again does not', async () => {
    const clock = manualClock()
    const heartbeats = new Heartbeats(clock)
    heartbeats.seeNode(aNode('a', '1'))
    heartbeats.seeLease(aLease('a', 'first'))
    await clock.advance(5_000)
    heartbeats.seeLease(aLease('a', 'first'))
    heartbeats.seeNode(aNode('a', '1'))
    expect(heartbeats.silentForMs('a')).toBe(5_000)
    heartbeats.seeLease(aLease('a', 'second'))
    expect(heartbeats.silentForMs('a')).toBe(0)
  })

  it('SYS-7 a first heartbeat may be anybody’s, a second one is an agent’s, and another node of the name starts anew', () => {
    const heartbeats = new Heartbeats(manualClock())
    heartbeats.seeNode(aNode('a', '1'))
    heartbeats.seeNode(aNode('a', '1', '2026-01-01T00:00:00Z'))
    expect(heartbeats.isKept('a')).toBe(false)
    heartbeats.seeNode(aNode('a', '1', '2026-01-01T00:00:10Z'))
    expect(heartbeats.isKept('a')).toBe(true)
    heartbeats.seeNode(aNode('a', '2', '2026-01-01T00:00:20Z'))
    expect(heartbeats.isKept('a')).toBe(false)
  })

  it('SYS-7 nothing is remembered of nodes and leases that are gone', () => {
    const does = fc.constantFrom('node', 'lease', 'no node', 'no lease')
    fc.assert(
      fc.property(fc.array(fc.tuple(does, fc.constantFrom('a', 'b'), fc.nat(3))), (steps) => {
        const heartbeats = new Heartbeats(manualClock())
        const [nodes, leases] = [new Set<string>(), new Set<string>()]
        for (const [what, name, sign] of steps) {
          if (what === 'node') {
            heartbeats.seeNode(aNode(name, String(sign), String(sign)))
            nodes.add(name)
          }
          if (what === 'lease') {
            heartbeats.seeLease(aLease(name, String(sign)))
            leases.add(name)
          }
          if (what === 'no node') {
            heartbeats.forgetNode(name)
            nodes.delete(name)
          }
          if (what === 'no lease') {
            heartbeats.forgetLease(name)
            leases.delete(name)
          }
        }
        expect(heartbeats.size).toBe(new Set([...nodes, ...leases]).size)
        for (const name of leases) expect(heartbeats.isKept(name)).toBe(true)
      }),
    )
  })
})
