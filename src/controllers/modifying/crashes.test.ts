// Kills the controller before and after every write and driver call. The next process must complete the modification, with
// the expected attributes in the driver, the claim and the volume.
import { afterEach, describe, expect, it } from 'vitest'
import { createModifyingFixture, type ModifyingFixture } from './modifying.fixture.ts'
import { UNDO_ANNOTATION } from './undo.ts'

let fixture: ModifyingFixture
afterEach(() => fixture.close())

interface Scenario {
  readonly title: string
  /** Failure of the driver's first call. */
  readonly firstEffect?: 'loseReply' | 'INTERNAL' | 'INVALID_ARGUMENT'
  /** The user's edit. */
  readonly request: object
  /** The user's second edit, after the first call. */
  readonly secondRequest?: object
  readonly expected: {
    readonly className: string
    readonly attributes: Readonly<Record<string, string>>
    readonly iops?: string
  }
  readonly needsAtomic?: true
}

const classPatch = (volumeAttributesClassName: string) => ({ spec: { volumeAttributesClassName } })
const iopsPatch = (iops: string) => ({ spec: { resources: { requests: { iops } } } })
const SCENARIOS: readonly Scenario[] = [
  {
    title: 'modifies the class',
    request: classPatch('gold'),
    expected: { className: 'gold', attributes: { tier: 'gold', zone: '1' } },
  },
  {
    title: 'modifies the class and rolls back after a lost response',
    firstEffect: 'loseReply',
    request: classPatch('gold'),
    secondRequest: classPatch('silver'),
    expected: { className: 'silver', attributes: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'modifies the class and rolls back after a failure',
    firstEffect: 'INTERNAL',
    request: classPatch('gold'),
    secondRequest: classPatch('silver'),
    expected: { className: 'silver', attributes: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'rolls back an infeasible class',
    firstEffect: 'INVALID_ARGUMENT',
    request: classPatch('gold'),
    secondRequest: classPatch('silver'),
    expected: { className: 'silver', attributes: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'modifies iops',
    request: iopsPatch('900'),
    expected: { className: 'silver', attributes: { tier: 'silver', zone: '1', iops: '900' }, iops: '900' },
    needsAtomic: true,
  },
  {
    title: 'modifies class and iops and rolls back after a lost response',
    firstEffect: 'loseReply',
    request: { spec: { volumeAttributesClassName: 'gold', resources: { requests: { iops: '900' } } } },
    secondRequest: { spec: { volumeAttributesClassName: 'silver', resources: { requests: { iops: '500' } } } },
    expected: { className: 'silver', attributes: { tier: 'silver', zone: '1', iops: '500' }, iops: '500' },
    needsAtomic: true,
  },
]

async function setUp(scenario: Scenario): Promise<void> {
  fixture = await createModifyingFixture({ settings: { mutableKeys: ['tier', 'zone', 'iops'] } })
  await fixture.createClass('zoned', { zone: '1' })
  await fixture.createClass('silver', { tier: 'silver' })
  await fixture.createClass('gold', { tier: 'gold' })
  const io = scenario.expected.iops === undefined ? {} : { io: { iops: '500' } }
  const attributes = { ...(scenario.expected.iops === undefined ? {} : { iops: '500' }), tier: 'silver', zone: '1' }
  await fixture.createClaim('data', { className: 'silver', attributes, ...io })
  const { firstEffect } = scenario
  if (firstEffect === 'loseReply') fixture.setRules([{ times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
  else if (firstEffect) fixture.failCalls(firstEffect, 1)
}

async function editClaim(scenario: Scenario, instance: { readonly hasCrashed: boolean }): Promise<void> {
  await fixture.patchClaim('data', scenario.request)
  if (!scenario.secondRequest) return
  await fixture.waitUntil(() => instance.hasCrashed || fixture.modifyCalls().length > 0, 'the first call, or the crash')
  await fixture.patchClaim('data', scenario.secondRequest)
}

async function verifyResult({ expected }: Scenario, instance: ReturnType<ModifyingFixture['start']>): Promise<void> {
  await fixture.settle()
  await fixture.waitUntil(() => !instance.isBusy() && !instance.queueState(), 'the queue to be empty')
  await fixture.waitUntilSettled(expected.className)
  const [claim, volume] = [await fixture.claim(), await fixture.volume()]
  expect(fixture.driverAttributes()).toEqual(expected.attributes)
  expect(volume.spec?.volumeAttributesClassName).toBe(expected.className)
  expect(claim.metadata.annotations?.[UNDO_ANNOTATION]).toBeUndefined()
  if (expected.iops === undefined) return
  expect(claim.status?.capacity?.iops).toBe(expected.iops)
  expect(volume.spec?.capacity?.iops).toBe(expected.iops)
  expect(claim.status?.allocatedResourceStatuses).toBeUndefined()
}

describe.each([true, false])('after a crash at any call (atomic commits: %s)', (isAtomic) => {
  const scenarios = SCENARIOS.filter(({ needsAtomic }) => isAtomic || !needsAtomic)
  it.each(scenarios)('VAC-5 VAC-7 $title', async (scenario) => {
    await setUp(scenario)
    const firstProcess = fixture.start({ isAtomic })
    await editClaim(scenario, firstProcess)
    await verifyResult(scenario, firstProcess)
    const calls = firstProcess.calls.length
    expect(calls).toBeGreaterThanOrEqual(3)
    for (let call = 0; call < calls; call++) {
      for (const when of ['before', 'after'] as const) {
        await fixture.close()
        await setUp(scenario)
        const crashingProcess = fixture.start({ isAtomic, killAt: { call, when } })
        await editClaim(scenario, crashingProcess)
        await fixture.waitUntil(() => crashingProcess.hasCrashed, `the crash at call ${call}`)
        await verifyResult(scenario, fixture.start({ isAtomic }))
      }
    }
  })
})
