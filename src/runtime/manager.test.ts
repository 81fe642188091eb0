import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { silentLog } from '../base/log.ts'
import type { ManualClock } from '../base/manual-clock.ts'
import type { Client } from '../client/client.ts'
import { createManager, type ManagerOptions, type TermDeps } from './manager.ts'
import { createClientMetrics } from './metrics.ts'
import type { Runnable } from './run-all.ts'

const LEASE = { namespace: 'default', name: 'work' }
const waitTurns = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve))
}
const advance = async (clock: ManualClock, ms: number) => {
  for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 250) {
    await clock.advance(250)
    await waitTurns(5)
  }
}
const waitUntilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

async function startManager(
  options: Omit<Partial<ManagerOptions>, 'clock' | 'client'> & Pick<ManagerOptions, 'createControllers'>,
) {
  const { clock, server } = await createServerFixture()
  const client = inProcessClient(server.objects, SYSTEM_USER)
  return { clock, client, ...runManager({ client, clock, ...options }) }
}

function runManager(
  options: Partial<ManagerOptions> & { client: Client; clock: ManualClock } & Pick<ManagerOptions, 'createControllers'>,
) {
  const registry = new Registry()
  const metrics = createClientMetrics(registry)
  const manager = createManager({ random: () => 0.5, log: silentLog, metrics, ...options })
  const stop = new AbortController()
  const managerRun = manager.run(stop.signal)
  managerRun.catch(() => {}) // the tests await the promise themselves
  const readMetric = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value
  const stopAndAdvance = async () => {
    stop.abort()
    await advance(options.clock, 1_000)
    return managerRun
  }
  return { manager, health: manager.health, stopped: managerRun, stop, stopAndAdvance, readMetric }
}

/** Creates work that fails `failures` times, each time after `afterMs`, and then runs until it is stopped. */
function createFailingWork(failures: number, { afterMs = 0 } = {}) {
  const state = { starts: [] as number[], running: 0, runningMax: 0 }
  const create = ({ clock }: TermDeps): Runnable[] => [
    {
      async run(signal) {
        state.starts.push(clock.monotonicMs())
        state.running++
        state.runningMax = Math.max(state.runningMax, state.running)
        try {
          if (state.starts.length > failures) return await waitUntilAborted(signal)
          if (afterMs > 0) await clock.sleep(afterMs, signal)
          throw new Error('the driver is broken')
        } finally {
          state.running--
        }
      },
    },
  ]
  return { state, create }
}

const intervalsBetween = (times: readonly number[]) => times.slice(1).map((ms, index) => ms - times[index]!)

describe('the manager', () => {
  it('SYS-8 restarts the failed work of a leader with a growing delay, and keeps the lease', async () => {
    const { state, create } = createFailingWork(Number.POSITIVE_INFINITY)
    const { clock, client, stopAndAdvance, readMetric } = await startManager({
      lease: LEASE,
      createControllers: create,
    })
    await advance(clock, 300_000)
    const delays = intervalsBetween(state.starts)
    expect(delays.slice(0, 6)).toEqual([750, 1_500, 3_000, 6_000, 12_000, 24_000].map((ms) => expect.closeTo(ms, -3)))
    for (const delay of delays.slice(6)) expect(delay).toBeGreaterThanOrEqual(45_000)
    expect(state.starts.length).toBeLessThan(15)
    const { spec } = await client.get(leaseKind, LEASE)
    expect(spec).toMatchObject({ leaseTransitions: 0 })
    expect(spec?.holderIdentity).not.toBe('')
    expect(await readMetric('leader_election_master_status')).toBe(1)
    await stopAndAdvance()
  })

  it('SYS-11 reports failed work in /healthz, /healthz/leader-election and a metric until it has recovered', async () => {
    const { create } = createFailingWork(2)
    const { clock, health, stopAndAdvance, readMetric } = await startManager({
      lease: LEASE,
      createControllers: create,
    })
    await advance(clock, 500)
    expect(health['/healthz']!()).toBe(
      "the leader's controllers failed (consecutive failures: 1): the driver is broken",
    )
    await advance(clock, 1_000)
    expect(health['/healthz']!()).toBe(
      "the leader's controllers failed (consecutive failures: 2): the driver is broken",
    )
    expect(health['/healthz/leader-election']!()).toBe(health['/healthz']!())
    expect(await readMetric('stowage_leader_work_failures_total')).toBe(2)
    await advance(clock, 9_000)
    expect(health['/healthz']!()).toBeDefined()
    await advance(clock, 3_000)
    expect(health['/healthz']!()).toBeUndefined()
    expect(health['/healthz/leader-election']!()).toBeUndefined()
    await stopAndAdvance()
  })

  it('SYS-8 resets the restart delay after the work has recovered', async () => {
    const { state, create } = createFailingWork(Number.POSITIVE_INFINITY, { afterMs: 60_000 })
    const { clock, stopAndAdvance } = await startManager({ lease: LEASE, createControllers: create })
    await advance(clock, 300_000)
    for (const delay of intervalsBetween(state.starts)) expect(delay).toBeLessThan(62_000)
    await stopAndAdvance()
  })

  it('SYS-8 stops the other work before it restarts failed work', async () => {
    const { state, create } = createFailingWork(3)
    const slowWork = { running: 0, runningMax: 0 }
    const slowRunnable: Runnable = {
      async run(signal) {
        slowWork.runningMax = Math.max(slowWork.runningMax, ++slowWork.running)
        await waitUntilAborted(signal)
        await waitTurns(3)
        slowWork.running--
      },
    }
    const { clock, stopAndAdvance } = await startManager({
      lease: LEASE,
      createControllers: (deps) => [slowRunnable, ...create(deps)],
    })
    await advance(clock, 30_000)
    expect(state.starts).toHaveLength(4)
    expect(slowWork).toEqual({ running: 1, runningMax: 1 })
    expect(state.runningMax).toBe(1)
    await stopAndAdvance()
  })

  it('SYS-8 treats controllers that cannot be created as failed work', async () => {
    let creations = 0
    const { clock, health, stopAndAdvance } = await startManager({
      lease: LEASE,
      createControllers: () => {
        creations++
        throw new Error('no such capability')
      },
    })
    await advance(clock, 60_000)
    expect(creations).toBeGreaterThan(3)
    expect(creations).toBeLessThan(10)
    expect(health['/healthz']!()).toContain('no such capability')
    await stopAndAdvance()
  })

  it('SYS-8 does not start the work of a standby process while another process leads', async () => {
    const leaderWork = createFailingWork(Number.POSITIVE_INFINITY)
    const standbyWork = createFailingWork(0)
    const { clock, client, stopAndAdvance } = await startManager({ lease: LEASE, createControllers: leaderWork.create })
    await advance(clock, 1_000)
    const standby = runManager({
      client,
      clock,
      random: () => 0.25,
      lease: LEASE,
      createControllers: standbyWork.create,
    })
    expect(standby.health['/readyz']!()).toBe('the holder of the lease is not known yet')
    await advance(clock, 60_000)
    expect(standbyWork.state.starts).toEqual([])
    expect(standby.health['/healthz']!()).toBeUndefined()
    expect(standby.health['/readyz']!()).toBeUndefined()
    await stopAndAdvance()
    await advance(clock, 5_000)
    expect(standbyWork.state.starts).toHaveLength(1)
    await standby.stopAndAdvance()
  })

  it('SYS-8 reports work that is still running after the lease is lost', async () => {
    let release = () => {}
    const stuckRunnable: Runnable = {
      run: () =>
        new Promise<void>((resolve) => {
          release = resolve
        }),
    }
    const { clock, server } = await createServerFixture()
    const client = inProcessClient(server.objects, SYSTEM_USER)
    let isDisconnected = false
    const networkClient: Client = {
      ...client,
      update: (...args) => (isDisconnected ? Promise.reject(new Error('unreachable')) : client.update(...args)),
      get: (...args) => (isDisconnected ? Promise.reject(new Error('unreachable')) : client.get(...args)),
    }
    const { health, stopAndAdvance } = runManager({
      client: networkClient,
      clock,
      lease: LEASE,
      createControllers: () => [stuckRunnable],
    })
    await advance(clock, 1_000)
    expect(health['/healthz/leader-election']!()).toBeUndefined()
    isDisconnected = true
    await advance(clock, 15_000)
    expect(health['/healthz/leader-election']!()).toBe(
      "the lease is lost, but the leader's controllers are still running",
    )
    release()
    await waitTurns()
    expect(health['/healthz/leader-election']!()).toBeUndefined()
    await stopAndAdvance()
  })

  it('runs immediately without a lease, and rejects with the error of the work', async () => {
    const { state, create } = createFailingWork(1)
    const { stopped } = await startManager({ createControllers: create })
    await expect(stopped).rejects.toThrow('the driver is broken')
    expect(state.starts).toHaveLength(1)
  })

  it('SYS-11 is ready as leader only when its caches are synced', async () => {
    const { clock, server } = await createServerFixture()
    const client = inProcessClient(server.objects, SYSTEM_USER)
    let isBlocked = true
    const blockedClient: Client = {
      ...client,
      list: (kind, request) =>
        isBlocked && kind.plural === 'configmaps' ? Promise.reject(new Error('blocked')) : client.list(kind, request),
      watch: (kind, request) => {
        if (isBlocked) throw new Error('blocked')
        return client.watch(kind, request)
      },
    }
    const { health, stopAndAdvance } = runManager({
      client: blockedClient,
      clock,
      lease: LEASE,
      createControllers: ({ caches }) => {
        caches.of(configMapKind)
        return [{ run: waitUntilAborted }]
      },
    })
    await advance(clock, 5_000)
    expect(health['/healthz/leader-election']!()).toBeUndefined()
    expect(health['/readyz']!()).toBe('the caches are not synced yet')
    isBlocked = false
    await advance(clock, 60_000)
    expect(health['/readyz']!()).toBeUndefined()
    await stopAndAdvance()
  })

  it('SYS-11 is ready without a lease when its caches are synced', async () => {
    const syncedCalls: string[] = []
    const { clock, health, stopAndAdvance } = await startManager({
      createControllers: ({ caches }) => {
        caches.of(configMapKind)
        return [{ run: waitUntilAborted }]
      },
      onSynced: () => syncedCalls.push('synced'),
    })
    expect(health['/readyz']!()).toBe('the caches are not synced yet')
    await advance(clock, 1_000)
    expect(health['/readyz']!()).toBeUndefined()
    expect(syncedCalls).toEqual(['synced'])
    expect(await stopAndAdvance()).toBe('stopped')
  })

  it('abandons work that ignores its signal after the stop timeout', async () => {
    const { clock, stopped, stop } = await startManager({
      createControllers: () => [{ run: () => new Promise(() => {}) }],
      stopTimeoutMs: 5_000,
    })
    await advance(clock, 1_000)
    stop.abort()
    await advance(clock, 5_000)
    expect(await stopped).toBe('abandoned')
  })
})
