// Kills the controller before and after every write and driver call; the next process must finish, with the expected
// attributes in the driver and the same in claim and volume.
import { afterEach, describe, expect, it } from 'vitest'
import { aWorld, type World } from './modifying.fixture.ts'
import { UNDO } from './undo.ts'

let world: World
afterEach(() => world.close())

interface Scenario {
  readonly title: string
  /** How the driver's first call fails. */
  readonly first?: 'loseReply' | 'INTERNAL' | 'INVALID_ARGUMENT'
  /** The user's edit, and a second one after the first call. */
  readonly request: object
  readonly afterwards?: object
  readonly ends: { readonly className: string; readonly has: Readonly<Record<string, string>>; readonly iops?: string }
  readonly needsAtomic?: true
}

const aClass = (volumeAttributesClassName: string) => ({ spec: { volumeAttributesClassName } })
const withIops = (iops: string) => ({ spec: { resources: { requests: { iops } } } })
const SCENARIOS: readonly Scenario[] = [
  {
    title: 'modifies the class',
    request: aClass('gold'),
    ends: { className: 'gold', has: { tier: 'gold', zone: '1' } },
  },
  {
    title: 'modifies the class, rolls back after a lost response',
    first: 'loseReply',
    request: aClass('gold'),
    afterwards: aClass('silver'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'modifies the class, rolls back after a failure',
    first: 'INTERNAL',
    request: aClass('gold'),
    afterwards: aClass('silver'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'modifies to an infeasible class, rolls back',
    first: 'INVALID_ARGUMENT',
    request: aClass('gold'),
    afterwards: aClass('silver'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'modifies iops',
    request: withIops('900'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1', iops: '900' }, iops: '900' },
    needsAtomic: true,
  },
  {
    title: 'modifies class and iops, rolls back after a lost response',
    first: 'loseReply',
    request: { spec: { volumeAttributesClassName: 'gold', resources: { requests: { iops: '900' } } } },
    afterwards: { spec: { volumeAttributesClassName: 'silver', resources: { requests: { iops: '500' } } } },
    ends: { className: 'silver', has: { tier: 'silver', zone: '1', iops: '500' }, iops: '500' },
    needsAtomic: true,
  },
]

async function begin(scenario: Scenario): Promise<void> {
  world = await aWorld({ settings: { mutableKeys: ['tier', 'zone', 'iops'] } })
  await world.aClass('zoned', { zone: '1' })
  await world.aClass('silver', { tier: 'silver' })
  await world.aClass('gold', { tier: 'gold' })
  const io = scenario.ends.iops === undefined ? {} : { io: { iops: '500' } }
  const has = { ...(scenario.ends.iops === undefined ? {} : { iops: '500' }), tier: 'silver', zone: '1' }
  await world.aClaim('data', { className: 'silver', has, ...io })
  const { first } = scenario
  if (first === 'loseReply') world.rules([{ times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
  else if (first) world.fails(first, 1)
}

async function editClaim(scenario: Scenario, process: { readonly isDead: boolean }): Promise<void> {
  await world.patchClaim('data', scenario.request)
  if (!scenario.afterwards) return
  await world.until(() => process.isDead || world.modifyCalls().length > 0, 'the first call, or the crash')
  await world.patchClaim('data', scenario.afterwards)
}

async function verify({ ends }: Scenario, process: ReturnType<World['start']>): Promise<void> {
  await world.settle()
  await world.until(() => !process.isBusy() && !process.standing(), 'the queue to be empty')
  await world.untilSettled(ends.className)
  const [claim, volume] = [await world.claim(), await world.volume()]
  expect(world.has()).toEqual(ends.has)
  expect(volume.spec?.volumeAttributesClassName).toBe(ends.className)
  expect(claim.metadata.annotations?.[UNDO]).toBeUndefined()
  if (ends.iops === undefined) return
  expect(claim.status?.capacity?.iops).toBe(ends.iops)
  expect(volume.spec?.capacity?.iops).toBe(ends.iops)
  expect(claim.status?.allocatedResourceStatuses).toBeUndefined()
}

describe.each([true, false])('a crash at any call (atomic commits: %s)', (isAtomic) => {
  const scenarios = SCENARIOS.filter(({ needsAtomic }) => isAtomic || !needsAtomic)
  it.each(scenarios)('VAC-5 VAC-7 $title', async (scenario) => {
    await begin(scenario)
    const complete = world.start({ isAtomic })
    await editClaim(scenario, complete)
    await verify(scenario, complete)
    const calls = complete.calls.length
    expect(calls).toBeGreaterThanOrEqual(3)
    for (let call = 0; call < calls; call++) {
      for (const when of ['before', 'after'] as const) {
        await world.close()
        await begin(scenario)
        const doomed = world.start({ isAtomic, killAt: { call, when } })
        await editClaim(scenario, doomed)
        await world.until(() => doomed.isDead, `the crash at call ${call}`)
        await verify(scenario, world.start({ isAtomic }))
      }
    }
  })
})
