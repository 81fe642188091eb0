// Whatever users, drivers and crashes do in whatever order: once all is well, the driver's volume has what the claim's
// status says, claim and volume agree, and nothing is left of what was begun.
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

type Act =
  | { readonly do: 'class'; readonly name: string | null }
  | { readonly do: 'throughput'; readonly amount: string | null }
  | {
      readonly do: 'driver'
      readonly effect: 'lose' | 'INTERNAL' | 'INVALID_ARGUMENT' | 'ABORTED' | 'OUT_OF_RANGE' | 'FAILED_PRECONDITION'
    }
  | { readonly do: 'crash' }
  | { readonly do: 'pass'; readonly ms: number }

const anAct: fc.Arbitrary<Act> = fc.oneof(
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

async function live(world: World, acts: readonly Act[], isLate: boolean): Promise<void> {
  let process = world.start()
  for (const act of acts) {
    if (act.do === 'class')
      await world.setClass(act.name).catch(() => {}) // some are refused
    else if (act.do === 'throughput') await world.setIo({ throughput: act.amount })
    else if (act.do === 'pass') await world.trial.clock.advance(act.ms)
    else if (act.do === 'crash') {
      // As good as dead: whatever it has not written is forgotten.
      await process.stop()
      process = world.start()
    } else if (act.effect === 'lose') world.rules([{ times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
    else world.fails(act.effect, 2)
    if (!isLate) await world.settle()
  }
  world.rules([])
  if ((await world.claim()).spec?.volumeAttributesClassName === 'missing') await world.setClass('gold')
  await world.until(async () => {
    await world.trial.clock.advance(20_000)
    await world.settle()
    return !process.isBusy() && process.standing() === undefined
  }, 'all to be done')
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

describe('any sequence of wishes, answers and crashes', () => {
  it.each([
    ['one after the other', false],
    ['all at once', true],
  ])(
    'VAC-5 VAC-7 PIO-4 ends with driver, volume and claim in agreement (%s)',
    async (_how, isLate) => {
      await fc.assert(
        fc.asyncProperty(fc.boolean(), fc.array(anAct, { maxLength: 12 }), async (hasClass, acts) => {
          const world = await aWorld()
          try {
            for (const [name, parameters] of Object.entries(CLASSES)) await world.aClass(name, parameters)
            const silver = { className: 'silver', has: { iops: '500', tier: 'silver' } }
            await world.aClaim('data', hasClass ? silver : {})
            await live(world, acts, isLate)
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
