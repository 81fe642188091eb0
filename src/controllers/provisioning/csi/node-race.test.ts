import { describe, expect, it } from 'vitest'
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
const node: NodeDeployment = {
  name: 'here',
  segments: { host: 'here' },
  immediateBinding: true,
  baseDelayMs: 20_000,
  maxDelayMs: 60_000,
}

async function startNodeFixture(more: Partial<NodeDeployment> = {}, availableCapacity = 1_000n) {
  const started = await createProvisionerFixture({
    facts: FACTS,
    options: { node: { ...node, ...more }, strictTopology: true },
  })
  const { apiServer, provisioner, driver, caches, client, signal, clock } = started
  driver.answer({ getCapacity: async () => ({ availableCapacity }) })
  await apiServer.post(CLAIMS, { metadata: { name: 'orders' }, spec: aClaim().spec })
  const { persistentVolumeClaimKind } = await import('../../../api/kinds/claim/claim.ts')
  const claims = caches.of(persistentVolumeClaimKind)
  await claims.whenSynced(signal)
  const current = () => client.get(persistentVolumeClaimKind, { namespace: 'default', name: 'orders' })
  return {
    ...started,
    selected: async () => (await current()).metadata.annotations?.[SELECTED_NODE],
    select: (name: string) =>
      apiServer.patch(`${CLAIMS}/orders`, { metadata: { annotations: { [SELECTED_NODE]: name } } }),
    current,
    accepts: async (storageClass = aClass()) =>
      provisioner.accepts!({ claim: await current(), storageClass, selectedNode: undefined }, signal),
    /** Advances the clock until the promise settles; returns its value and the time passed. */
    async timed<T>(answer: Promise<T>) {
      const startMs = clock.monotonicMs()
      const value = await apiServer.advanceUntilSettled(answer)
      return { value, ms: clock.monotonicMs() - startMs }
    },
  }
}

describe('a per-node provisioner', () => {
  it('PROV-9 accepts claims of its node only', async () => {
    const { accepts, select, driver, provisioner, signal, current } = await startNodeFixture()
    await select('there')
    expect(await accepts()).toBe(false)
    const request = { claim: await current(), storageClass: aClass(), volumeName: 'pvc-1', selectedNode: 'there' }
    expect(await provisioner.provision(request, signal)).toMatchObject({ is: 'ignored' })
    await select('here')
    expect(await accepts()).toBe(true)
    const result = await provisioner.provision({ ...request, claim: await current(), selectedNode: 'here' }, signal)
    expect(result.is).toBe('provisioned')
    expect(driver.created[0]!.accessibilityRequirements?.requisite).toMatchObject([{ segments: { host: 'here' } }])
  })

  it('PROV-9 ignores claims that wait for a pod, and all without a node if it does not compete', async () => {
    const delayed = await startNodeFixture()
    expect(await delayed.accepts(aClass({}, { volumeBindingMode: 'WaitForFirstConsumer' }))).toBe(false)
    expect(await delayed.selected()).toBeUndefined()
    const shy = await startNodeFixture({ immediateBinding: false })
    expect(await shy.accepts()).toBe(false)
    expect(await shy.selected()).toBeUndefined()
  })

  it('PROV-9 selects its own node after a delay if it has capacity', async () => {
    const { accepts, timed, selected, driver } = await startNodeFixture()
    const { value, ms } = await timed(accepts())
    expect(value).toBe(false) // the claim's change brings it back
    expect(ms).toBeGreaterThanOrEqual(10_000)
    expect(ms).toBeLessThan(10_500)
    expect(await selected()).toBe('here')
    expect(driver.capacityAsked).toMatchObject([{ accessibleTopology: { segments: { host: 'here' } } }])
  })

  it('PROV-9 stops competing once another node is selected', async () => {
    const { accepts, timed, select, selected } = await startNodeFixture()
    const waiting = accepts()
    await new Promise((resolve) => setImmediate(resolve))
    await select('there')
    const { value, ms } = await timed(waiting)
    expect(value).toBe(false)
    expect(ms).toBeLessThan(1_000)
    expect(await selected()).toBe('there')
  })

  it('CAP-5 retries a claim without capacity with increasing delays', async () => {
    const { accepts, timed, selected, driver } = await startNodeFixture({}, 99n)
    const failing = () => timed(accepts().catch((error: Error) => error.message))
    const first = await failing()
    expect(first.value).toContain('node here has no capacity for claim orders')
    const second = await failing()
    expect(second.ms).toBeGreaterThan(first.ms)
    expect(await selected()).toBeUndefined()
    driver.answer({ getCapacity: async () => ({ availableCapacity: 100n }) })
    await timed(accepts())
    expect(await selected()).toBe('here')
  })

  it('PROV-9 accepts a claim if GetCapacity fails', async () => {
    const { accepts, timed, selected, driver } = await startNodeFixture()
    driver.answer({
      getCapacity: async () => {
        throw new CsiError('INTERNAL', 'no idea')
      },
    })
    await timed(accepts())
    expect(await selected()).toBe('here')
  })

  it('PROV-9 ignores classes whose topologies exclude its node', async () => {
    const { accepts, selected } = await startNodeFixture()
    const allowedTopologies = [{ matchLabelExpressions: [{ key: 'host', values: ['there'] }] }]
    expect(await accepts(aClass({}, { allowedTopologies }))).toBe(false)
    expect(await selected()).toBeUndefined()
  })

  it('PROV-9 reads the claim again after a conflict', async () => {
    const { accepts, timed, apiServer, selected, driver } = await startNodeFixture()
    let changes = 0
    driver.answer({
      getCapacity: async () => {
        if (changes++ === 0) await apiServer.patch(`${CLAIMS}/orders`, { metadata: { labels: { changed: 'yes' } } })
        return { availableCapacity: 1_000n }
      },
    })
    await timed(accepts())
    expect(await selected()).toBe('here')
    expect(changes).toBe(2)
  })

  it('PROV-14 deletes the volumes of its node only', async () => {
    const { provisioner, signal, driver } = await startNodeFixture()
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
    expect(await provisioner.delete(volumeAt('there'), signal)).toEqual({
      is: 'ignored',
      because: 'PV was not provisioned on this node',
    })
    expect(await provisioner.delete(volumeAt('here'), signal)).toEqual({ is: 'deleted' })
    expect(driver.deleted).toHaveLength(1)
  })
})
