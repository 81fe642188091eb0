import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/status-error.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { Seats } from '../http/messages.ts'
import { createFlowControl, type FlowRequest, type LevelName, USER_WAITING_MAX } from './flow-control.ts'

const ACCOUNT_GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:shop']
const aRequest = (name: string, groups: string[] = [], fields: Partial<FlowRequest> = {}): FlowRequest => ({
  user: { name, groups },
  group: '',
  resource: 'persistentvolumeclaims',
  ...fields,
})

/** Returns functions that send and end requests, the users whose requests have started, and the rejections. */
function setUp(concurrency: Readonly<Record<LevelName, number>>) {
  const clock = manualClock()
  const flow = createFlowControl({ clock, concurrency })
  const startedUsers: string[] = []
  const ends: (() => void)[] = []
  const rejections: ApiError[] = []
  const send = (name: string, groups?: string[], fields?: Partial<FlowRequest>) => {
    const onStart = (seats: Seats | undefined) => {
      startedUsers.push(name)
      ends.push(() => seats?.release())
    }
    const result = flow.start(aRequest(name, groups, fields))
    if (result instanceof Promise) void result.then(onStart, (error) => rejections.push(error))
    else onStart(result)
  }
  const endFirst = async () => {
    ends.shift()!()
    await clock.advance(0)
  }
  return { clock, flow, startedUsers, ends, rejections, send, endFirst }
}

describe('flow control', () => {
  it('SYS-19 lets waiting users take turns, regardless of the number of requests that each has sent', async () => {
    const { send, startedUsers, endFirst, ends } = setUp({ system: 0, workload: 0, default: 1 })
    for (let i = 0; i < 5; i++) send('flood')
    send('ann')
    send('bob')
    for (let i = 0; ends.length > 0 && i < 10; i++) await endFirst()
    expect(startedUsers).toEqual(['flood', 'flood', 'ann', 'bob', 'flood', 'flood', 'flood'])
  })

  it('SYS-19 leaves room for other users while the requests of one user do not end', async () => {
    const { send, startedUsers, rejections } = setUp({ system: 0, workload: 0, default: 8 })
    for (let i = 0; i < 20; i++) send('flood', [], { width: 2 })
    expect(startedUsers).toHaveLength(3) // of width 2: together three quarters of 8
    send('ann')
    send('bob')
    expect(startedUsers.slice(3)).toEqual(['ann', 'bob'])
    expect(rejections).toEqual([])
  })

  it('SYS-19 does not limit the group system:masters or requests for non-resource paths', () => {
    const { send, startedUsers, rejections } = setUp({ system: 0, workload: 0, default: 0 })
    for (let i = 0; i < 1_000; i++) send('admin', ['system:masters'])
    send('probe', [], { resource: '' })
    expect(startedUsers).toHaveLength(1_001)
    expect(rejections).toEqual([])
  })

  it('SYS-19 reserves a share of each level for its own requests', () => {
    const { send, startedUsers } = setUp({ system: 4, workload: 4, default: 4 })
    for (let i = 0; i < 100; i++) send(`flood-${i}`)
    expect(startedUsers).toHaveLength(10) // its own 4, and 3 from each other level
    send('node', ['system:nodes'])
    send('leader', ACCOUNT_GROUPS, { group: 'coordination.k8s.io', resource: 'leases' })
    send('robot', ACCOUNT_GROUPS)
    expect(startedUsers.slice(10)).toEqual(['node', 'leader', 'robot'])
  })

  it('SYS-19 rejects requests beyond the queue of a user with 429, but not the requests of other users', () => {
    const { send, flow } = setUp({ system: 0, workload: 0, default: 1 })
    send('flood')
    for (let i = 0; i < USER_WAITING_MAX; i++) send('flood')
    expect(() => send('flood')).toThrow(expect.objectContaining({ code: 429 }))
    send('ann')
    expect(flow.stats('default')).toEqual({ seatsInUse: 1, waiting: USER_WAITING_MAX + 1 })
  })

  it('SYS-19 rejects a request that has waited 15 s, and removes it from the queue', async () => {
    const { send, clock, rejections, flow, startedUsers, endFirst } = setUp({ system: 0, workload: 0, default: 1 })
    send('flood')
    send('ann')
    await clock.advance(15_000)
    expect(rejections).toEqual([expect.any(ApiError)])
    expect(rejections[0]!.code).toBe(429)
    expect(flow.stats('default')).toEqual({ seatsInUse: 1, waiting: 0 })
    await endFirst()
    expect(startedUsers).toEqual(['flood'])
    send('bob')
    expect(startedUsers).toEqual(['flood', 'bob'])
  })

  it('SYS-19 reports for 10 s that a request of the system level was rejected, and reports no rejections of other levels', async () => {
    const { send, clock, flow } = setUp({ system: 1, workload: 0, default: 1 })
    for (let i = 0; i < 3; i++) send(`user-${i}`)
    await clock.advance(15_000)
    expect(flow.problem()).toBeUndefined()
    for (const node of ['a', 'b', 'c']) send(node, ['system:nodes'])
    await clock.advance(15_000)
    expect(flow.problem()).toMatch(/^overloaded: requests of nodes or components were rejected/)
    await clock.advance(11_000)
    expect(flow.problem()).toBeUndefined()
  })

  it('SYS-19 counts a wide request by its width, up to a quarter of its level', async () => {
    const { send, flow, startedUsers, endFirst } = setUp({ system: 0, workload: 0, default: 16 })
    for (let i = 0; i < 4; i++) send(`lister-${i}`, [], { width: 100 })
    expect(flow.stats('default').seatsInUse).toBe(16)
    send('ann')
    expect(startedUsers).toHaveLength(4)
    await endFirst()
    expect(startedUsers).toHaveLength(5)
    expect(flow.stats('default').seatsInUse).toBe(13)
  })
})
