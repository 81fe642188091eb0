// Tests of the agent that mounts a volume whose node expansion is pending.
import { describe, expect, it } from 'vitest'
import { CLAIMS, createAgentFixture, PODS, VOLUMES } from './agent.fixture.ts'

describe('an expanded volume', () => {
  const pending = {
    allocatedResources: { storage: '2Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  }

  it('SYS-7 is expanded while it is mounted, and the claim is updated', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    fixture.calls()
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * 1024 ** 3
    await fixture.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: '2Gi' } } }, 'merge')
    await fixture.server.patch(`${CLAIMS}/orders/status`, { status: pending }, 'merge')
    const claimStatus = async () => (await fixture.server.get(`${CLAIMS}/orders`)).json.status
    await fixture.waitUntil(
      async () => (await claimStatus()).capacity.storage === '2Gi',
      'the new capacity of the claim',
    )
    expect(fixture.calls()).toEqual(['NodeExpandVolume'])
    expect((await claimStatus()).allocatedResourceStatuses).toBeUndefined()
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^FileSystemResizeSuccessful: /))
  })

  it('SYS-7 is not expanded again after the driver rejected it as in use, and the pod runs', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders', { pv: { capacity: { storage: '2Gi' } }, claimStatus: pending })
    fixture.setRules([{ method: 'NodeExpandVolume', effect: { do: 'fail', code: 'FAILED_PRECONDITION' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    await fixture.server.patch(`${PODS}/shop`, { metadata: { labels: { look: 'again' } } }, 'merge')
    await fixture.untilIdle()
    expect(fixture.calls().filter((call) => call === 'NodeExpandVolume')).toHaveLength(1)
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^VolumeResizeFailed: /))
  })
})
