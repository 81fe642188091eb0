import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { ApiError } from '../api/status-error.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { ManualClock } from '../base/manual-clock.ts'
import { type Client, failedWrite } from '../client/client.ts'
import { createLeaderElection, NotLeaderError } from './leader-election.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const settle = async () => {
  for (let i = 0; i < 10; i++) await turn()
}

interface Fault {
  latencyMs: number
  fails: boolean
  /** The request arrives and the response is lost. */
  answerLost: boolean
}

/** A process with its own clock rate, timers that stop while it is paused, and a faulty network. */
function aProcess(world: ManualClock, client: Client, identity: string, random: Random) {
  const state = { rate: 1, paused: false, fault: { latencyMs: 0, fails: false, answerLost: false } as Fault }
  const waking: (() => void)[] = []
  const whenAwake = (run: () => void) => () => {
    if (state.paused) waking.push(run)
    else run()
  }
  const clock: Clock = {
    nowMs: () => world.nowMs(),
    nextTurn: () => world.nextTurn(),
    monotonicMs: () => world.monotonicMs() * state.rate,
    after: (ms, run) => world.after(ms / state.rate, whenAwake(run)),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const abort = () => {
          cancel()
          reject(signal?.reason)
        }
        const wake = () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        }
        const cancel = world.after(ms / state.rate, whenAwake(wake))
        signal?.addEventListener('abort', abort, { once: true })
      }),
  }
  const overNetwork = async <T>(call: () => Promise<T>): Promise<T> => {
    const { latencyMs, fails, answerLost } = state.fault
    if (latencyMs > 0) await world.sleep(latencyMs / 2)
    if (fails) throw new ApiError(503, 'ServiceUnavailable', 'unreachable')
    const answer = await call()
    if (latencyMs > 0) await world.sleep(latencyMs / 2)
    while (state.paused) await new Promise<void>((resolve) => waking.push(resolve))
    if (answerLost) throw new ApiError(503, 'ServiceUnavailable', 'connection reset')
    return answer
  }
  const far: Client = {
    ...client,
    get: (...args) => overNetwork(() => client.get(...args)),
    create: (...args) => overNetwork(() => client.create(...args)),
    update: (...args) => overNetwork(() => client.update(...args)),
  }
  const terms: string[] = []
  const election = createLeaderElection({
    client: far,
    clock,
    random,
    namespace: 'default',
    name: 'leader',
    identity,
    onChange: (is) => terms.push(is ? 'leads' : 'waits'),
  })
  const closing = new AbortController()
  const running = election.run(
    (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    closing.signal,
  )
  return {
    identity,
    state,
    election,
    terms,
    pause: () => {
      state.paused = true
    },
    resume: () => {
      state.paused = false
      for (const run of waking.splice(0)) run()
    },
    stop: async () => {
      closing.abort()
      state.paused = false
      for (const run of waking.splice(0)) run()
      for (let done = false; !done; ) {
        void running.then(() => {
          done = true
        })
        await world.advance(1_000)
        await settle()
      }
    },
  }
}

async function aWorld() {
  const { clock, server, store } = await createServerFixture()
  return { world: clock, client: inProcessClient(server.objects, SYSTEM_USER), store }
}

const advance = async (world: ManualClock, ms: number) => {
  for (let waited = 0; waited < ms; waited += 250) {
    await world.advance(250)
    await settle()
  }
}

describe('leader election', () => {
  it('SYS-8 elects one leader, and another soon after it has stopped', async () => {
    const { world, client } = await aWorld()
    const [a, b] = ['a', 'b'].map((name) => aProcess(world, client, name, () => 0.5)) as any
    await advance(world, 5_000)
    const [first, second] = a.election.isLeader ? [a, b] : [b, a]
    expect([first.election.isLeader, second.election.isLeader]).toEqual([true, false])
    expect(second.election.holder).toBe(first.identity)
    await advance(world, 60_000)
    expect(first.election.isLeader).toBe(true)
    await first.stop()
    await advance(world, 3_000)
    expect(second.election.isLeader).toBe(true)
    const { spec } = await client.get(leaseKind, { namespace: 'default', name: 'leader' })
    expect(spec).toMatchObject({ holderIdentity: second.identity, leaseDurationSeconds: 15 })
    expect(spec?.leaseTransitions).toBeGreaterThan(0)
    expect(spec?.renewTime).toMatch(/T\d\d:\d\d:\d\d\.\d{6}Z$/)
    await second.stop()
  })

  it('SYS-8 replaces a crashed leader within the lease duration and a few retries', async () => {
    const { world, client } = await aWorld()
    const dead = aProcess(world, client, 'dead', () => 0.5)
    await advance(world, 3_000)
    expect(dead.election.isLeader).toBe(true)
    dead.pause()
    const next = aProcess(world, client, 'next', () => 0.5)
    await advance(world, 14_000)
    expect(next.election.isLeader).toBe(false)
    await advance(world, 6_000)
    expect(next.election.isLeader).toBe(true)
    await dead.stop()
    await next.stop()
  })

  it('stops a leader that cannot renew before another can start', async () => {
    const { world, client } = await aWorld()
    const a = aProcess(world, client, 'a', () => 0.5)
    await advance(world, 3_000)
    a.state.fault = { latencyMs: 0, fails: true, answerLost: false }
    await advance(world, 10_500)
    expect(a.election.isLeader).toBe(false)
    expect(a.terms).toEqual(['waits', 'leads', 'waits'])
    expect(() => a.election.assertStillLeader()).toThrow(NotLeaderError)
    expect(() => a.election.fence()).toThrow(NotLeaderError)
    await a.stop()
  })

  it('ends leadership while a renewal hangs', async () => {
    const { world, client } = await aWorld()
    const a = aProcess(world, client, 'a', () => 0.5)
    await advance(world, 3_000)
    a.state.fault = { latencyMs: 10_000_000, fails: false, answerLost: false }
    await advance(world, 10_500)
    expect(a.election.isLeader).toBe(false)
    expect(a.terms).toEqual(['waits', 'leads', 'waits'])
  })

  it('fails a commit that a former leader sent, and costs the holder no resourceVersion', async () => {
    const { world, client, store } = await aWorld()
    const a = aProcess(world, client, 'a', () => 0.5)
    await advance(world, 3_000)
    const fence = a.election.fence()
    const create = (name: string) =>
      ({ do: 'create', kind: configMapKind, object: { metadata: { namespace: 'default', name } } }) as const
    const before = store.revision
    await client.commit([fence, create('in-time')])
    expect(store.revision).toBe(before + 1)
    a.pause()
    const b = aProcess(world, client, 'b', () => 0.5)
    await advance(world, 25_000)
    expect(b.election.isLeader).toBe(true)
    const error = await client.commit([fence, create('too-late')]).catch((reason) => reason)
    expect(failedWrite(error)).toBe(0)
    await expect(client.get(configMapKind, { namespace: 'default', name: 'too-late' })).rejects.toMatchObject({
      code: 404,
    })
    await a.stop()
    await b.stop()
  })

  it('rejects times that would allow two leaders', () => {
    const options = {
      client: {} as Client,
      clock: {} as Clock,
      random: Math.random,
      namespace: 'n',
      name: 'l',
      identity: 'i',
    }
    expect(() => createLeaderElection({ ...options, leaseMs: 10_000 })).toThrow('Cannot elect a leader')
  })

  it('SYS-8 never has two leaders under any clock drift, pause or network fault', async () => {
    const step = fc.record({
      who: fc.nat(2),
      act: fc.constantFrom('pause', 'resume', 'fault', 'heal'),
      latencyMs: fc.constantFrom(0, 500, 3_000, 12_000, 40_000),
      fails: fc.boolean(),
      answerLost: fc.boolean(),
      forMs: fc.integer({ min: 250, max: 20_000 }),
    })
    const rates = fc.tuple(...[0, 1, 2].map(() => fc.double({ min: 0.85, max: 1.15, noNaN: true })))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 15 }), rates, async (steps, rate) => {
        const { world, client } = await aWorld()
        const processes = ['a', 'b', 'c'].map((name, index) => {
          const one = aProcess(world, client, name, () => 0.3 * index)
          one.state.rate = rate[index]!
          return one
        })
        for (const { who, act, latencyMs, fails, answerLost, forMs } of steps) {
          const one = processes[who]!
          if (act === 'pause') one.pause()
          else if (act === 'resume') one.resume()
          else if (act === 'fault') one.state.fault = { latencyMs, fails, answerLost }
          else one.state.fault = { latencyMs: 0, fails: false, answerLost: false }
          for (let waited = 0; waited < forMs; waited += 250) {
            await world.advance(250)
            await settle()
            const leaders = processes.filter(({ election }) => election.isLeader)
            expect(leaders.map(({ identity }) => identity).length).toBeLessThanOrEqual(1)
          }
        }
      }),
      { numRuns: 25, endOnFailure: true },
    )
  })
})
