// Random sequences of edits, driver failures and crashes. Once the driver works again, its volume must have the
// attributes in the claim's status, claim and volume must agree, and no modification may be left in progress.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aWorld, type World } from './modifying.fixture.ts'
import { UNDO } from './undo.ts'

const CLASSES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  silver: { iops: '500', tier: 'silver' },
  gold: { iops: '1000' },
  bronze: { tier: 'bronze' },
}

/** MODIFY_SEQUENCES=5000 for the long form. */
const SEQUENCES = Number(process.env.MODIFY_SEQUENCES ?? 60)

type Action =
  | { readonly do: 'class'; readonly name: string | null }
  | { readonly do: 'throughput'; readonly amount: string | null }
  | {
      readonly do: 'driver'
      readonly effect: 'lose' | 'INTERNAL' | 'INVALID_ARGUMENT' | 'ABORTED' | 'OUT_OF_RANGE' | 'FAILED_PRECONDITION'
    }
  | { readonly do: 'crash' }
  | { readonly do: 'pass'; readonly ms: number }

const anAction: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    do: fc.constant('class' as const),
    name: fc.constantFrom('silver', 'gold', 'bronze', 'missing', null),
  }),
  fc.record({ do: fc.constant('throughput' as const), amount: fc.constantFrom('10Mi', '20Mi', null) }),
  fc.record({
    do: fc.constant('driver' as const),
    effect: fc.constantFrom(
      'lose' as const,
      'INTERNAL' as const,
      'INVALID_ARGUMENT' as const,
      'ABORTED' as const,
      'OUT_OF_RANGE' as const,
      'FAILED_PRECONDITION' as const,
    ),
  }),
  fc.record({ do: fc.constant('crash' as const) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(0, 1_000, 400_000) }),
)

async function run(world: World, actions: readonly Action[], isLate: boolean): Promise<void> {
  let process = world.start()
  for (const action of actions) {
    if (action.do === 'class')
      await world.setClass(action.name).catch(() => {}) // some edits are invalid
    else if (action.do === 'throughput') await world.setIo({ throughput: action.amount })
    else if (action.do === 'pass') await world.server.clock.advance(action.ms)
    else if (action.do === 'crash') {
      // Equals a crash: a new process knows only the stored objects.
      await process.stop()
      process = world.start()
    } else if (action.effect === 'lose') world.rules([{ times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
    else world.fails(action.effect, 2)
    if (!isLate) await world.settle()
  }
  world.rules([])
  if ((await world.claim()).spec?.volumeAttributesClassName === 'missing') await world.setClass('gold')
  await world.until(async () => {
    await world.server.clock.advance(20_000)
    await world.settle()
    return !process.isBusy() && process.standing() === undefined
  }, 'the queue to be empty')
}

async function verify(world: World): Promise<void> {
  const [claim, volume] = [await world.claim(), await world.volume()]
  const { status = {}, spec } = claim
  const current = status.currentVolumeAttributesClassName
  expect(status.modifyVolumeStatus).toBeUndefined()
  expect(status.conditions ?? []).toEqual([])
  expect(status.allocatedResourceStatuses).toBeUndefined()
  expect(claim.metadata.annotations?.[UNDO]).toBeUndefined()
  expect(spec?.volumeAttributesClassName ?? current).toBe(current)
  expect(volume.spec?.volumeAttributesClassName).toBe(current)
  const wanted = spec?.resources?.requests?.throughput
  if (wanted !== undefined) expect(status.capacity?.throughput).toBe(wanted)
  expect(volume.spec?.capacity).toEqual(status.capacity)
  const throughput = status.capacity?.throughput?.replace('Mi', '')
  expect(world.has()).toMatchObject({ ...(current ? CLASSES[current] : {}), ...(throughput ? { throughput } : {}) })
  expect(world.fake.record.overlaps).toEqual([])
}

describe('any sequence of edits, responses and crashes', () => {
  it.each([
    ['one after the other', false],
    ['all at once', true],
  ])(
    'VAC-5 VAC-7 PIO-4 ends with driver, volume and claim in agreement (%s)',
    async (_how, isLate) => {
      await fc.assert(
        fc.asyncProperty(fc.boolean(), fc.array(anAction, { maxLength: 12 }), async (hasClass, actions) => {
          const world = await aWorld()
          try {
            for (const [name, parameters] of Object.entries(CLASSES)) await world.aClass(name, parameters)
            const silver = { className: 'silver', has: { iops: '500', tier: 'silver' } }
            await world.aClaim('data', hasClass ? silver : {})
            await run(world, actions, isLate)
            await verify(world)
          } finally {
            await world.close()
          }
        }),
        { numRuns: SEQUENCES },
      )
    },
    600_000,
  )
})
