import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { CsiError } from '../../../csi/index.ts'
import type { NodeDeployment } from './options.ts'
import { aClaim, aClass, createProvisionerFixture } from './provisioner.fixture.ts'
import { factsOf } from './stub-driver.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const SELECTED_NODE = 'volume.kubernetes.io/selected-node'
const FACTS = factsOf(
  ['CREATE_DELETE_VOLUME', 'GET_CAPACITY'],
  ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
)
const NODE: NodeDeployment = {
  name: 'node-1',
  segments: { host: 'node-1' },
  immediateBinding: true,
  baseDelayMs: 20_000,
  maxDelayMs: 60_000,
}

async function createNodeFixture(overrides: Partial<NodeDeployment> = {}, availableCapacity = 1_000n) {
  const fixture = await createProvisionerFixture({
    facts: FACTS,
    options: { node: { ...NODE, ...overrides }, strictTopology: true },
  })
  const { apiServer, provisioner, driver, caches, client, signal, clock } = fixture
  driver.setReplies({ getCapacity: async () => ({ availableCapacity }) })
  await apiServer.post(CLAIMS, { metadata: { name: 'orders' }, spec: aClaim().spec })

  const claims = caches.of(persistentVolumeClaimKind)
  await claims.whenSynced(signal)
  const getClaim = () => client.get(persistentVolumeClaimKind, { namespace: 'default', name: 'orders' })
  return {
    ...fixture,
    selectedNode: async () => (await getClaim()).metadata.annotations?.[SELECTED_NODE],
    setSelectedNode: (name: string) =>
      apiServer.patch(`${CLAIMS}/orders`, { metadata: { annotations: { [SELECTED_NODE]: name } } }),
    getClaim,
    accepts: async (storageClass = aClass()) =>
      provisioner.accepts!({ claim: await getClaim(), storageClass, selectedNode: undefined }, signal),
    /** Advances the clock until the promise settles. Returns its value and the elapsed time. */
    async measure<T>(promise: Promise<T>) {
      const startMs = clock.monotonicMs()
      const value = await apiServer.advanceUntilSettled(promise)
      return { value, ms: clock.monotonicMs() - startMs }
    },
  }
}

describe('a per-node provisioner', () => {
  it('accepts only claims of its node', async () => {
    const { accepts, setSelectedNode, driver, provisioner, signal, getClaim } = await createNodeFixture()
    await setSelectedNode('node-2')
    expect(await accepts()).toBe(false)
    const request = { claim: await getClaim(), storageClass: aClass(), volumeName: 'pvc-1', selectedNode: 'node-2' }
    expect(await provisioner.provision(request, signal)).toMatchObject({ is: 'ignored' })
    await setSelectedNode('node-1')
    expect(await accepts()).toBe(true)
    const result = await provisioner.provision({ ...request, claim: await getClaim(), selectedNode: 'node-1' }, signal)
    expect(result.is).toBe('provisioned')
    expect(driver.createRequests[0]!.accessibilityRequirements?.requisite).toMatchObject([
      { segments: { host: 'node-1' } },
    ])
  })

  it('ignores claims that wait for a pod, and claims without a node if immediate binding is off', async () => {
    const delayedFixture = await createNodeFixture()
    expect(await delayedFixture.accepts(aClass({}, { volumeBindingMode: 'WaitForFirstConsumer' }))).toBe(false)
    expect(await delayedFixture.selectedNode()).toBeUndefined()
    const fixtureWithoutBinding = await createNodeFixture({ immediateBinding: false })
    expect(await fixtureWithoutBinding.accepts()).toBe(false)
    expect(await fixtureWithoutBinding.selectedNode()).toBeUndefined()
  })

  it('selects its own node after a delay if it has capacity', async () => {
    const { accepts, measure, selectedNode, driver } = await createNodeFixture()
    const { value, ms } = await measure(accepts())
    expect(value).toBe(false) // the change to the claim triggers another reconcile
    expect(ms).toBeGreaterThanOrEqual(10_000)
    expect(ms).toBeLessThan(10_500)
    expect(await selectedNode()).toBe('node-1')
    expect(driver.capacityRequests).toMatchObject([{ accessibleTopology: { segments: { host: 'node-1' } } }])
  })

  it('stops waiting when another node is selected', async () => {
    const { accepts, measure, setSelectedNode, selectedNode } = await createNodeFixture()
    const acceptance = accepts()
    await new Promise((resolve) => setImmediate(resolve))
    await setSelectedNode('node-2')
    const { value, ms } = await measure(acceptance)
    expect(value).toBe(false)
    expect(ms).toBeLessThan(1_000)
    expect(await selectedNode()).toBe('node-2')
  })

  it('CAP-5 retries with increasing delays while its node has no capacity', async () => {
    const { accepts, measure, selectedNode, driver } = await createNodeFixture({}, 99n)
    const acceptAndFail = () => measure(accepts().catch((error: Error) => error.message))
    const firstAttempt = await acceptAndFail()
    expect(firstAttempt.value).toContain('node node-1 has no capacity for claim orders')
    const secondAttempt = await acceptAndFail()
    expect(secondAttempt.ms).toBeGreaterThan(firstAttempt.ms)
    expect(await selectedNode()).toBeUndefined()
    driver.setReplies({ getCapacity: async () => ({ availableCapacity: 100n }) })
    await measure(accepts())
    expect(await selectedNode()).toBe('node-1')
  })

  it('selects its own node if GetCapacity fails', async () => {
    const { accepts, measure, selectedNode, driver } = await createNodeFixture()
    driver.setReplies({
      getCapacity: async () => {
        throw new CsiError('INTERNAL', 'injected')
      },
    })
    await measure(accepts())
    expect(await selectedNode()).toBe('node-1')
  })

  it('ignores claims of classes whose allowed topologies exclude its node', async () => {
    const { accepts, selectedNode } = await createNodeFixture()
    const allowedTopologies = [{ matchLabelExpressions: [{ key: 'host', values: ['node-2'] }] }]
    expect(await accepts(aClass({}, { allowedTopologies }))).toBe(false)
    expect(await selectedNode()).toBeUndefined()
  })

  it('reads the claim again after a conflict', async () => {
    const { accepts, measure, apiServer, selectedNode, driver } = await createNodeFixture()
    let changes = 0
    driver.setReplies({
      getCapacity: async () => {
        if (changes++ === 0) await apiServer.patch(`${CLAIMS}/orders`, { metadata: { labels: { changed: 'yes' } } })
        return { availableCapacity: 1_000n }
      },
    })
    await measure(accepts())
    expect(await selectedNode()).toBe('node-1')
    expect(changes).toBe(2)
  })

  it('PROV-14 deletes only volumes of its node', async () => {
    const { provisioner, signal, driver } = await createNodeFixture()
    const volumeAt = (host: string) =>
      ({
        metadata: { name: 'pv' },
        spec: {
          csi: { driver: 'disk.example.com', volumeHandle: 'v' },
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [host] }] }],
            },
          },
        },
      }) as never
    expect(await provisioner.delete(volumeAt('node-2'), signal)).toEqual({
      is: 'ignored',
      message: 'PV was not provisioned on this node',
    })
    expect(await provisioner.delete(volumeAt('node-1'), signal)).toEqual({ is: 'deleted' })
    expect(driver.deleteRequests).toHaveLength(1)
  })
})
