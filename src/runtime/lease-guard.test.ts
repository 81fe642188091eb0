import { describe, expect, it, onTestFinished } from 'vitest'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { microTimestamp } from '../base/timestamps.ts'
import { NotLeaderError } from './leader-election.ts'
import { createLeaseGuard } from './lease-guard.ts'

const NAMESPACE = 'default'
const ref = (name: string) => ({ namespace: NAMESPACE, name })
const settle = async () => {
  for (let i = 0; i < 10; i++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** Runs a guard for the leases `one` and `two`, with 15 s for a lease and 5 s between attempts. */
async function createGuardFixture() {
  const server = await createServerFixture()
  const { clock } = server
  const client = server.client()
  const warnings: { fields: object; message: string }[] = []
  const warn = (fields: object, message: string) => void warnings.push({ fields, message })
  const log = { debug: () => {}, info: () => {}, warn, error: warn }
  const times = { leaseMs: 15_000, retryMs: 5_000 }
  const guard = createLeaseGuard({ client, clock, log, namespace: NAMESPACE, names: ['one', 'two'], ...times })
  const terms: AbortSignal[] = []
  const abort = new AbortController()
  const lead = (signal: AbortSignal) => {
    terms.push(signal)
    return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }
  const advance = async (ms: number) => {
    for (let waitedMs = 0; waitedMs < ms; waitedMs += 1_000) {
      await clock.advance(1_000)
      await settle()
    }
  }
  onTestFinished(async () => {
    abort.abort()
    await settle()
    await server.store.close()
  })
  const renewTime = () => microTimestamp(clock.nowMs())
  return {
    client,
    guard,
    terms,
    warnings,
    advance,
    renewTime,
    /** Creates a lease that the holder has renewed at this moment, or at `renewTime`. */
    hold: (name: string, holderIdentity: string, spec: object = {}) =>
      client.create(leaseKind, {
        metadata: ref(name),
        spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: renewTime(), ...spec },
      }),
    async renew(name: string) {
      const lease = await client.get(leaseKind, ref(name))
      await client.update(leaseKind, { ...lease, spec: { ...lease.spec, renewTime: renewTime() } })
    },
    run: async () => {
      void guard.run(lead, abort.signal)
      await settle()
    },
  }
}

describe('the lease guard', () => {
  it('SYS-8 leads immediately if no other program holds a lease', async () => {
    const { guard, terms, run, hold } = await createGuardFixture()
    await hold('one', '')
    await run()
    expect(terms).toHaveLength(1)
    expect(guard.isLeader).toBe(true)
    expect(() => guard.assertStillLeader()).not.toThrow()
  })

  it('SYS-8 refuses to lead while a lease is renewed, and names the lease and its holder', async () => {
    const { guard, terms, warnings, run, hold, renew, advance } = await createGuardFixture()
    await hold('two', 'csi-provisioner-0')
    await run()
    for (let i = 0; i < 4; i++) {
      await advance(10_000)
      await renew('two')
    }
    expect(terms).toEqual([])
    expect(guard.holder).toBe('csi-provisioner-0')
    expect(() => guard.assertStillLeader()).toThrow(NotLeaderError)
    expect(warnings).toEqual([
      {
        fields: { lease: 'default/two', holder: 'csi-provisioner-0' },
        message: 'refusing to lead: another program that does the same work holds its lease',
      },
    ])
  })

  it('SYS-8 leads after the lease has expired', async () => {
    const { terms, run, hold, advance } = await createGuardFixture()
    await hold('one', 'csi-resizer-0')
    await run()
    await advance(14_000)
    expect(terms).toEqual([])
    await advance(7_000)
    expect(terms).toHaveLength(1)
  })

  it('SYS-8 leads immediately if the lease expired long ago', async () => {
    const { terms, run, hold } = await createGuardFixture()
    await hold('one', 'csi-resizer-0', { renewTime: '2020-01-01T00:00:00.000000Z' })
    await run()
    expect(terms).toHaveLength(1)
  })

  it('SYS-8 stops leading when another program acquires a lease', async () => {
    const { guard, terms, run, hold, advance } = await createGuardFixture()
    await run()
    expect(terms[0]?.aborted).toBe(false)
    await hold('one', 'csi-attacher-0')
    await advance(16_000)
    expect(terms[0]?.aborted).toBe(true)
    expect(guard.isLeader).toBe(false)
  })

  it('SYS-29 does not start to lead if the leases cannot be read', async () => {
    const { client, terms, warnings, run, advance } = await createGuardFixture()
    const { get } = client
    client.get = () => Promise.reject(new Error('no route to host'))
    await run()
    await advance(10_000)
    expect(terms).toEqual([])
    expect(warnings.map(({ message }) => message)).toEqual(['cannot read the leases of other programs; retrying'])
    client.get = get
    await advance(5_000)
    expect(terms).toHaveLength(1)
  })
})
