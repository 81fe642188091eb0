import { describe, expect, it } from 'vitest'
import { createAgentFixture, DRIVER, NODE } from '../agent.fixture.ts'

const NODE_URL = `/api/v1/nodes/${NODE}`
const LEASE_URL = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`

describe('the node heartbeat', () => {
  it('reports the node as Ready with its resources, and renews its lease', async () => {
    const fixture = await createAgentFixture()
    const { status } = (await fixture.server.get(NODE_URL)).json
    expect(status.conditions.find(({ type }: { type: string }) => type === 'Ready')).toMatchObject({ status: 'True' })
    expect(status.capacity).toMatchObject({ cpu: '4', memory: '8Gi', pods: '110' })
    const readLeaseSpec = async () => (await fixture.server.get(LEASE_URL)).json.spec
    const { renewTime, leaseDurationSeconds } = await readLeaseSpec()
    expect(leaseDurationSeconds).toBe(40)
    await fixture.waitUntil(async () => (await readLeaseSpec()).renewTime > renewTime, 'the lease to be renewed')
  })

  it('PLUS-11 renews a shorter lease more often', async () => {
    const fixture = await createAgentFixture({ agent: { leaseMs: 8_000 } })
    const readLeaseSpec = async () => (await fixture.server.get(LEASE_URL)).json.spec
    const { renewTime, leaseDurationSeconds } = await readLeaseSpec()
    expect(leaseDurationSeconds).toBe(8)
    await fixture.waitUntil(async () => (await readLeaseSpec()).renewTime > renewTime, 'the lease to be renewed')
    const renewalIntervalMs = Date.parse((await readLeaseSpec()).renewTime) - Date.parse(renewTime)
    expect(renewalIntervalMs).toBeLessThanOrEqual(2_500)
  })

  it('annotates the node, so that kube-controller-manager attaches volumes, and restores the annotation after a restart', async () => {
    const annotation = 'volumes.kubernetes.io/controller-managed-attach-detach'
    const fixture = await createAgentFixture()
    const readAnnotations = async () => (await fixture.server.get(NODE_URL)).json.metadata.annotations
    expect(await readAnnotations()).toMatchObject({ [annotation]: 'true' })
    await fixture.stop()
    await fixture.server.patch(NODE_URL, { metadata: { annotations: { [annotation]: null } } }, 'merge')
    fixture.start()
    await fixture.waitUntil(async () => (await readAnnotations())?.[annotation] === 'true', 'the annotation')
  })

  it('rejects a node name that another agent holds, and names that agent', async () => {
    const fixture = await createAgentFixture()
    const versionBefore = (await fixture.server.get(NODE_URL)).json.metadata.resourceVersion
    await fixture.stop()
    fixture.start({ identity: 'another' })
    const error = await fixture.stopped
    expect(error?.name).toBe('NodeNameTakenError')
    expect(error?.message).toMatch(
      /"node-1" is used by another agent \(agent-1\), which renewed its lease \d+ s ago\. Choose/,
    )
    expect((await fixture.server.get(NODE_URL)).json.metadata.resourceVersion).toBe(versionBefore)
  })

  it('acquires an expired lease, and stops the agent when it loses the lease', async () => {
    const fixture = await createAgentFixture()
    await fixture.stop()
    await fixture.server.clock.advance(41_000)
    fixture.start({ identity: 'another' })
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the second agent to start')
    const agentStopped = fixture.stopped
    const { spec } = (await fixture.server.get(LEASE_URL)).json
    expect(spec.holderIdentity).toBe('another')
    const renewTime = new Date(fixture.server.clock.nowMs() + 60_000).toISOString().replace('Z', '000Z')
    await fixture.server.patch(LEASE_URL, { spec: { holderIdentity: 'a third', renewTime } }, 'merge')
    let stopError: Error | undefined
    void agentStopped.then((error) => {
      stopError = error
    })
    await fixture.waitUntil(() => stopError !== undefined, 'the agent to stop')
    expect(stopError?.name).toBe('NodeNameTakenError')
  })

  it('does not prevent a killed agent from starting again', async () => {
    const fixture = await createAgentFixture()
    fixture.kill()
    fixture.start()
    await fixture.waitUntil(() => fixture.agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
  })
})
