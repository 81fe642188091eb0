// Random sequences of edits, driver failures and crashes. When the driver works again, its volume must have the attributes
// in the claim's status, claim and volume must be consistent, and no modification may be in progress.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createModifyingFixture, type ModifyingFixture } from './modifying.fixture.ts'
import { UNDO_ANNOTATION } from './undo.ts'

const CLASSES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  silver: { iops: '500', tier: 'silver' },
  gold: { iops: '1000' },
  bronze: { tier: 'bronze' },
}

/** Number of sequences, for example MODIFY_SEQUENCES=5000 for a long run. */
const SEQUENCES = Number(process.env.MODIFY_SEQUENCES ?? 60)

type Action =
  | { readonly do: 'class'; readonly name: string | null }
  | { readonly do: 'throughput'; readonly amount: string | null }
  | {
      readonly do: 'driver'
      readonly effect:
        | 'loseReply'
        | 'INTERNAL'
        | 'INVALID_ARGUMENT'
        | 'ABORTED'
        | 'OUT_OF_RANGE'
        | 'FAILED_PRECONDITION'
    }
  | { readonly do: 'crash' }
  | { readonly do: 'advance'; readonly ms: number }

const anAction: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    do: fc.constant('class' as const),
    name: fc.constantFrom('silver', 'gold', 'bronze', 'missing', null),
  }),
  fc.record({ do: fc.constant('throughput' as const), amount: fc.constantFrom('10Mi', '20Mi', null) }),
  fc.record({
    do: fc.constant('driver' as const),
    effect: fc.constantFrom(
      'loseReply' as const,
      'INTERNAL' as const,
      'INVALID_ARGUMENT' as const,
      'ABORTED' as const,
      'OUT_OF_RANGE' as const,
      'FAILED_PRECONDITION' as const,
    ),
  }),
  fc.record({ do: fc.constant('crash' as const) }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 1_000, 400_000) }),
)

async function runActions(fixture: ModifyingFixture, actions: readonly Action[], isConcurrent: boolean): Promise<void> {
  let instance = fixture.start()
  for (const action of actions) {
    if (action.do === 'class')
      await fixture.setClass(action.name).catch(() => {}) // some edits are invalid
    else if (action.do === 'throughput')
      await fixture.setIo({ throughput: action.amount }).catch(() => {}) // a stock server rejects amounts
    else if (action.do === 'advance') await fixture.server.clock.advance(action.ms)
    else if (action.do === 'crash') {
      // As after a crash, the new process has only the stored objects.
      await instance.stop()
      instance = fixture.start()
    } else if (action.effect === 'loseReply')
      fixture.setRules([{ times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
    else fixture.failCalls(action.effect, 2)
    if (!isConcurrent) await fixture.settle()
  }
  fixture.setRules([])
  if ((await fixture.claim()).spec?.volumeAttributesClassName === 'missing') await fixture.setClass('gold')
  await fixture.waitUntil(async () => {
    await fixture.server.clock.advance(20_000)
    await fixture.settle()
    return !instance.isBusy() && instance.queueState() === undefined
  }, 'the queue to be empty')
}

async function verifyResult(fixture: ModifyingFixture): Promise<void> {
  const [claim, volume] = [await fixture.claim(), await fixture.volume()]
  const { status = {}, spec } = claim
  const currentClass = status.currentVolumeAttributesClassName
  expect(status.modifyVolumeStatus).toBeUndefined()
  // Without a class in effect, the previous values may be unknown to a rollback, which then sets this condition.
  const conditions = (status.conditions ?? []).filter(({ reason }) => currentClass || reason !== 'PreviousValueUnknown')
  expect(conditions).toEqual([])
  expect(status.allocatedResourceStatuses).toBeUndefined()
  expect(claim.metadata.annotations?.[UNDO_ANNOTATION]).toBeUndefined()
  expect(spec?.volumeAttributesClassName ?? currentClass).toBe(currentClass)
  expect(volume.spec?.volumeAttributesClassName).toBe(currentClass)
  const requestedThroughput = spec?.resources?.requests?.throughput
  if (requestedThroughput !== undefined) expect(status.capacity?.throughput).toBe(requestedThroughput)
  expect(volume.spec?.capacity).toEqual(status.capacity)
  const throughput = status.capacity?.throughput?.replace('Mi', '')
  expect(fixture.driverAttributes()).toMatchObject({
    ...(currentClass ? CLASSES[currentClass] : {}),
    ...(throughput ? { throughput } : {}),
  })
  expect(fixture.fake.record.overlaps).toEqual([])
}

describe('the modifying controller after any sequence of edits, responses and crashes', () => {
  it.each([
    ['one after the other', false],
    ['all at once', true],
  ])(
    'VAC-5 VAC-7 PIO-4 leaves the driver, the volume and the claim consistent (edits %s)',
    async (_timing, isConcurrent) => {
      await fc.assert(
        fc.asyncProperty(fc.boolean(), fc.array(anAction, { maxLength: 12 }), async (hasClass, actions) => {
          const fixture = await createModifyingFixture()
          try {
            for (const [name, parameters] of Object.entries(CLASSES)) await fixture.createClass(name, parameters)
            const silver = { className: 'silver', attributes: { iops: '500', tier: 'silver' } }
            await fixture.createClaim('data', hasClass ? silver : {})
            await runActions(fixture, actions, isConcurrent)
            await verifyResult(fixture)
          } finally {
            await fixture.close()
          }
        }),
        { numRuns: SEQUENCES },
      )
    },
    600_000,
  )
})
