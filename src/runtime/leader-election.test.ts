import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { ApiError } from '../api/status-error.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import type { Clock, Random } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import type { ManualClock } from '../base/manual-clock.ts'
import { type Client, failedWriteIndex } from '../client/client.ts'
import { createLeaderElection, holdAll, NotLeaderError } from './leader-election.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
const settle = async () => {
  for (let i = 0; i < 10; i++) await nextTurn()
}

interface Fault {
  latencyMs: number
  fails: boolean
  /** Whether the response is lost after the request was processed. */
  losesResponse: boolean
}

/** Starts a process with its own clock rate, timers that stop while it is paused, and a faulty network. */
function startProcess(clock: ManualClock, client: Client, identity: string, random: Random) {
  const state = { rate: 1, isPaused: false, fault: { latencyMs: 0, fails: false, losesResponse: false } as Fault }
  const pendingWakeups: (() => void)[] = []
  const whenAwake = (run: () => void) => () => {
    if (state.isPaused) pendingWakeups.push(run)
    else run()
  }
  const processClock: Clock = {
    nowMs: () => clock.nowMs(),
    nextTurn: () => clock.nextTurn(),
    monotonicMs: () => clock.monotonicMs() * state.rate,
    after: (ms, run) => clock.after(ms / state.rate, whenAwake(run)),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const onAbort = () => {
          cancel()
          reject(signal?.reason)
        }
        const wake = () => {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        }
        const cancel = clock.after(ms / state.rate, whenAwake(wake))
        signal?.addEventListener('abort', onAbort, { once: true })
      }),
  }
  const overNetwork = async <T>(call: () => Promise<T>): Promise<T> => {
    const { latencyMs, fails, losesResponse } = state.fault
    if (latencyMs > 0) await clock.sleep(latencyMs / 2)
    if (fails) throw new ApiError(503, 'ServiceUnavailable', 'unreachable')
    const response = await call()
    if (latencyMs > 0) await clock.sleep(latencyMs / 2)
    while (state.isPaused) await new Promise<void>((resolve) => pendingWakeups.push(resolve))
    if (losesResponse) throw new ApiError(503, 'ServiceUnavailable', 'connection reset')
    return response
  }
  const networkClient: Client = {
    ...client,
    get: (...args) => overNetwork(() => client.get(...args)),
    create: (...args) => overNetwork(() => client.create(...args)),
    update: (...args) => overNetwork(() => client.update(...args)),
  }
  const leadershipChanges: string[] = []
  const election = createLeaderElection({
    client: networkClient,
    clock: processClock,
    random,
    namespace: 'default',
    name: 'leader',
    identity,
    onChange: (isLeader) => leadershipChanges.push(isLeader ? 'leads' : 'waits'),
  })
  const abort = new AbortController()
  const electionRun = election.run(
    (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    abort.signal,
  )
  return {
    identity,
    state,
    election,
    leadershipChanges,
    pause: () => {
      state.isPaused = true
    },
    resume: () => {
      state.isPaused = false
      for (const run of pendingWakeups.splice(0)) run()
    },
    stop: async () => {
      abort.abort()
      state.isPaused = false
      for (const run of pendingWakeups.splice(0)) run()
      for (let isStopped = false; !isStopped; ) {
        void electionRun.then(() => {
          isStopped = true
        })
        await clock.advance(1_000)
        await settle()
      }
    },
  }
}

async function createFixture() {
  const { clock, server, store } = await createServerFixture()
  return { clock, client: inProcessClient(server.objects, SYSTEM_USER), store }
}

const advance = async (clock: ManualClock, ms: number) => {
  for (let waitedMs = 0; waitedMs < ms; waitedMs += 250) {
    await clock.advance(250)
    await settle()
  }
}

describe('leader election', () => {
  it('SYS-8 elects one leader, and another one within a second after the first has stopped', async () => {
    const { clock, client } = await createFixture()
    const [a, b] = ['a', 'b'].map((name) => startProcess(clock, client, name, () => 0.5)) as any
    await advance(clock, 5_000)
    const [leader, standby] = a.election.isLeader ? [a, b] : [b, a]
    expect([leader.election.isLeader, standby.election.isLeader]).toEqual([true, false])
    expect(standby.election.holder).toBe(leader.identity)
    await advance(clock, 60_000)
    expect(leader.election.isLeader).toBe(true)
    await leader.stop()
    await advance(clock, 1_000)
    expect(standby.election.isLeader).toBe(true)
    const { spec } = await client.get(leaseKind, { namespace: 'default', name: 'leader' })
    expect(spec).toMatchObject({ holderIdentity: standby.identity, leaseDurationSeconds: 6 })
    expect(spec?.leaseTransitions).toBeGreaterThan(0)
    expect(spec?.renewTime).toMatch(/T\d\d:\d\d:\d\d\.\d{6}Z$/)
    await standby.stop()
  })

  it('SYS-8 replaces a crashed leader within eight seconds', async () => {
    const { clock, client } = await createFixture()
    const crashedProcess = startProcess(clock, client, 'dead', () => 0.5)
    await advance(clock, 3_000)
    expect(crashedProcess.election.isLeader).toBe(true)
    crashedProcess.pause()
    const nextProcess = startProcess(clock, client, 'next', () => 0.5)
    await advance(clock, 5_500)
    expect(nextProcess.election.isLeader).toBe(false)
    await advance(clock, 2_000)
    expect(nextProcess.election.isLeader).toBe(true)
    await crashedProcess.stop()
    await nextProcess.stop()
  })

  it('ends leadership within 4.5 seconds if the lease cannot be renewed', async () => {
    const { clock, client } = await createFixture()
    const a = startProcess(clock, client, 'a', () => 0.5)
    await advance(clock, 3_000)
    a.state.fault = { latencyMs: 0, fails: true, losesResponse: false }
    await advance(clock, 4_500)
    expect(a.election.isLeader).toBe(false)
    expect(a.leadershipChanges).toEqual(['waits', 'leads', 'waits'])
    expect(() => a.election.assertStillLeader()).toThrow(NotLeaderError)
    expect(() => a.election.fence()).toThrow(NotLeaderError)
    await a.stop()
  })

  it('ends leadership while a renewal hangs', async () => {
    const { clock, client } = await createFixture()
    const a = startProcess(clock, client, 'a', () => 0.5)
    await advance(clock, 3_000)
    a.state.fault = { latencyMs: 10_000_000, fails: false, losesResponse: false }
    await advance(clock, 4_500)
    expect(a.election.isLeader).toBe(false)
    expect(a.leadershipChanges).toEqual(['waits', 'leads', 'waits'])
  })

  it('fails the fenced commit of a former leader, and the fence creates no resourceVersion', async () => {
    const { clock, client, store } = await createFixture()
    const a = startProcess(clock, client, 'a', () => 0.5)
    await advance(clock, 3_000)
    const fence = a.election.fence()
    const create = (name: string) =>
      ({ do: 'create', kind: configMapKind, object: { metadata: { namespace: 'default', name } } }) as const
    const revisionBefore = store.revision
    await client.commit([...fence, create('in-time')])
    expect(store.revision).toBe(revisionBefore + 1)
    a.pause()
    const b = startProcess(clock, client, 'b', () => 0.5)
    await advance(clock, 25_000)
    expect(b.election.isLeader).toBe(true)
    const error = await client.commit([...fence, create('too-late')]).catch((reason) => reason)
    expect(failedWriteIndex(error)).toBe(0)
    await expect(client.get(configMapKind, { namespace: 'default', name: 'too-late' })).rejects.toMatchObject({
      code: 404,
    })
    await a.stop()
    await b.stop()
  })

  it('throws for times that would allow two leaders', () => {
    const options = {
      client: {} as Client,
      clock: {} as Clock,
      random: Math.random,
      namespace: 'n',
      name: 'l',
      identity: 'i',
    }
    expect(() => createLeaderElection({ ...options, leaseMs: 4_000 })).toThrow('Cannot elect a leader')
  })

  it('SYS-8 has at most one leader despite clock drift of 15 %, pauses and network faults', async () => {
    const step = fc.record({
      processIndex: fc.nat(2),
      action: fc.constantFrom('pause', 'resume', 'fault', 'heal'),
      latencyMs: fc.constantFrom(0, 500, 3_000, 12_000, 40_000),
      fails: fc.boolean(),
      losesResponse: fc.boolean(),
      durationMs: fc.integer({ min: 250, max: 20_000 }),
    })
    const rates = fc.tuple(...[0, 1, 2].map(() => fc.double({ min: 0.85, max: 1.15, noNaN: true })))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 15 }), rates, async (steps, rate) => {
        const { clock, client } = await createFixture()
        const processes = ['a', 'b', 'c'].map((name, index) => {
          const electionProcess = startProcess(clock, client, name, () => 0.3 * index)
          electionProcess.state.rate = rate[index]!
          return electionProcess
        })
        for (const { processIndex, action, latencyMs, fails, losesResponse, durationMs } of steps) {
          const electionProcess = processes[processIndex]!
          if (action === 'pause') electionProcess.pause()
          else if (action === 'resume') electionProcess.resume()
          else if (action === 'fault') electionProcess.state.fault = { latencyMs, fails, losesResponse }
          else electionProcess.state.fault = { latencyMs: 0, fails: false, losesResponse: false }
          for (let waitedMs = 0; waitedMs < durationMs; waitedMs += 250) {
            await clock.advance(250)
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

describe('holdAll', () => {
  it('SYS-8 leads while it holds every lease, and processes without a common lease lead at the same time', async () => {
    const { clock, client } = await createFixture()
    const stop = new AbortController()
    const workingIdentities = new Set<string>()
    const runs: Promise<void>[] = []
    const startHolder = (identity: string, names: readonly string[]) => {
      const deps = { client, clock, random: () => 0.5, namespace: 'default', identity }
      const election = holdAll(names.map((name) => createLeaderElection({ ...deps, name })))
      const abort = new AbortController()
      const signal = AbortSignal.any([stop.signal, abort.signal])
      const lead = async (term: AbortSignal) => {
        workingIdentities.add(identity)
        await new Promise((resolve) => term.addEventListener('abort', resolve, { once: true }))
        workingIdentities.delete(identity)
      }
      runs.push(election.run(lead, signal))
      return { election, abort }
    }
    const firstHolder = startHolder('first', ['a', 'b'])
    await advance(clock, 5_000)
    const secondHolder = startHolder('second', ['b', 'c'])
    startHolder('third', ['d'])
    await advance(clock, 20_000)
    expect([...workingIdentities].sort()).toEqual(['first', 'third'])
    expect(secondHolder.election.holder).toBe('first')
    expect(firstHolder.election.fence()).toHaveLength(2)
    expect(() => secondHolder.election.assertStillLeader()).toThrow(NotLeaderError)
    firstHolder.abort.abort()
    await advance(clock, 5_000)
    expect([...workingIdentities].sort()).toEqual(['second', 'third'])
    stop.abort()
    await advance(clock, 1_000)
    await Promise.all(runs)
    expect(workingIdentities.size).toBe(0)
  })
})

describe('createLeaderElection', () => {
  it('puts its labels on the lease, and logs the holder of the lease once while it waits', async () => {
    const { clock, client } = await createFixture()
    const stop = new AbortController()
    const lines: string[] = []
    const log = {
      ...silentLog,
      info: (fields: object, text: string) => void lines.push(JSON.stringify({ text, ...fields })),
    }
    const deps = { client, clock, random: () => 0.5, namespace: 'default', name: 'lock' }
    const lead = (term: AbortSignal) =>
      new Promise<void>((resolve) => term.addEventListener('abort', () => resolve(), { once: true }))
    const runs = [createLeaderElection({ ...deps, identity: 'a', labels: { team: 'storage' } }).run(lead, stop.signal)]
    await advance(clock, 2_000)
    runs.push(createLeaderElection({ ...deps, identity: 'b', log }).run(lead, stop.signal))
    await advance(clock, 10_000)
    const lease = await client.get(leaseKind, { namespace: 'default', name: 'lock' })
    expect(lease.metadata.labels).toEqual({ team: 'storage' })
    expect(lines).toEqual([
      JSON.stringify({ text: 'standing by: another process holds the lease', lease: 'default/lock', holder: 'a' }),
    ])
    stop.abort()
    await advance(clock, 1_000)
    await Promise.all(runs)
  })
})
