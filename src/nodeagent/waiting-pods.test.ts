// Tests pods whose volumes are not ready yet.
import { describe, expect, it } from 'vitest'
import { CLAIMS, createAgentFixture } from './agent.fixture.ts'

describe('a pod whose volume is not ready', () => {
  it('SYS-7 waits for an unbound claim, and has an event after two minutes', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders', { claimStatus: { phase: 'Pending' } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(
      async () => JSON.stringify((await fixture.pod('shop')).status).includes('is not bound to a volume yet'),
      'the reason in the pod status',
    )
    expect(await fixture.events('shop')).toEqual([])
    await fixture.server.clock.advance(124_000)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(
      /^FailedMount: Unable to attach or mount volumes: unmounted volumes=\[orders\]/,
    )
    await fixture.server.patch(`${CLAIMS}/orders/status`, { status: { phase: 'Bound' } }, 'merge')
    await fixture.waitUntilRunning('shop')
  })

  it("SYS-7 stays Pending if its volume's node affinity does not match the node", async () => {
    const fixture = await createAgentFixture()
    const otherZone = { matchExpressions: [{ key: 'example.com/zone', operator: 'In', values: ['far'] }] }
    await fixture.createVolume('orders', { pv: { nodeAffinity: { required: { nodeSelectorTerms: [otherZone] } } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toContain('NodeAffinity check failed')
    expect(fixture.calls()).toEqual([])
  })
})
