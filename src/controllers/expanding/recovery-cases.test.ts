// Tests the cases of recovery from expansion failure in KEP-1790: the fields of the claim and the volume at each step.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ClaimView, createExpandingFixture, type ExpandingFixture } from './expanding.fixture.ts'

const OUT_OF_RANGE = { do: 'fail', code: 'OUT_OF_RANGE', message: 'size not supported' } as const
const NO_CONDITIONS = { conditions: [] }
const RESIZING_CONDITIONS = { conditions: ['Resizing'] }
const INFEASIBLE_CONDITIONS = { conditions: ['ControllerResizeError', 'Resizing'] }
const NODE_PENDING_CONDITIONS = { conditions: ['FileSystemResizePending', 'Resizing'] }

let fixture: ExpandingFixture
beforeEach(async () => {
  fixture = await createExpandingFixture()
  await fixture.createClaim('data', { size: '10Gi' })
})
afterEach(() => fixture.close())

const expectView = async (expected: ClaimView) => expect(await fixture.view()).toEqual(expected)

async function finishNodeExpansion(size: string): Promise<void> {
  await fixture.startNodeExpansion()
  await fixture.completeNodeExpansion(size)
  await fixture.waitUntil(async () => (await fixture.view()).preResize === undefined, 'the annotation to be removed')
}

// With atomic commits a step is one transaction; without them it is one write per object.
for (const isAtomic of [true, false]) {
  describe(`recovery from expansion failure (${isAtomic ? 'atomic commits' : 'single writes'})`, () => {
    /** With atomic commits there is no view between the writes of the volume and the claim. */
    const viewsBetweenWrites = (view: ClaimView): ClaimView[] => (isAtomic ? [] : [view])

    it('REX-5 case 1: expands to 20Gi after an expansion to 100Gi has failed', async () => {
      fixture.setRules({ method: 'ControllerExpandVolume', times: 1, effect: OUT_OF_RANGE })
      fixture.start({ isAtomic })
      await expectView({ req: '10Gi', mark: '10Gi', cap: '10Gi', pvcap: '10Gi', quota: '10Gi', ...NO_CONDITIONS })
      await fixture.request('100Gi')
      await fixture.waitForState('ControllerResizeInfeasible')
      const unexpandedFields = { cap: '10Gi', pvcap: '10Gi', quota: '100Gi' }
      const at100 = { req: '100Gi', mark: '100Gi', alloc: '100Gi', ...unexpandedFields }
      expect(fixture.recordedViews.splice(0)).toEqual([
        { ...at100, state: 'ControllerResizeInProgress', ...RESIZING_CONDITIONS },
        { ...at100, state: 'ControllerResizeInfeasible', ...INFEASIBLE_CONDITIONS },
      ])

      await fixture.request('20Gi')
      await expectView({ ...at100, req: '20Gi', state: 'ControllerResizeInfeasible', ...INFEASIBLE_CONDITIONS })
      await fixture.waitForState('NodeResizePending')
      const at20 = { req: '20Gi', mark: '100Gi', alloc: '20Gi', quota: '100Gi' }
      const expandedFields = { cap: '10Gi', pvcap: '20Gi', preResize: '10Gi' }
      expect(fixture.recordedViews.splice(0)).toEqual([
        { ...at20, ...unexpandedFields, state: 'ControllerResizeInProgress', ...RESIZING_CONDITIONS },
        ...viewsBetweenWrites({
          ...at20,
          ...expandedFields,
          state: 'ControllerResizeInProgress',
          ...RESIZING_CONDITIONS,
        }),
        { ...at20, ...expandedFields, state: 'NodeResizePending', ...NODE_PENDING_CONDITIONS },
      ])

      await fixture.startNodeExpansion()
      await expectView({ ...at20, ...expandedFields, state: 'NodeResizeInProgress', ...NODE_PENDING_CONDITIONS })
      await finishNodeExpansion('20Gi')
      await expectView({ ...at20, cap: '20Gi', pvcap: '20Gi', ...NO_CONDITIONS })
      expect(fixture.expandCalls()).toEqual([100 * 1024 ** 3, 20 * 1024 ** 3])
      expect(fixture.bytes()).toBe(20 * 1024 ** 3)
    })

    it('REX-5 case 2: marks a later expansion to 120Gi infeasible', async () => {
      fixture.setRules({ method: 'ControllerExpandVolume', times: 1, effect: OUT_OF_RANGE })
      fixture.start({ isAtomic })
      await fixture.request('100Gi')
      await fixture.waitForState('ControllerResizeInfeasible')
      await fixture.request('20Gi')
      await fixture.waitForState('NodeResizePending')
      await finishNodeExpansion('20Gi')
      const sizes = { cap: '20Gi', pvcap: '20Gi' }
      await expectView({ req: '20Gi', mark: '100Gi', alloc: '20Gi', ...sizes, quota: '100Gi', ...NO_CONDITIONS })
      await fixture.settle()
      fixture.recordedViews.splice(0)

      fixture.setExpandEffect({ do: 'fail', code: 'INVALID_ARGUMENT' })
      await fixture.request('120Gi')
      await expectView({ req: '120Gi', mark: '120Gi', alloc: '20Gi', ...sizes, quota: '120Gi', ...NO_CONDITIONS })
      await fixture.waitForState('ControllerResizeInfeasible')
      const at120 = { req: '120Gi', mark: '120Gi', alloc: '120Gi', ...sizes, quota: '120Gi' }
      expect(fixture.recordedViews).toEqual([
        { ...at120, state: 'ControllerResizeInProgress', ...RESIZING_CONDITIONS },
        { ...at120, state: 'ControllerResizeInfeasible', ...INFEASIBLE_CONDITIONS },
      ])
    })

    it('REX-5 case 3: accepts the larger size if the request is lowered while the driver is expanding', async () => {
      fixture.setRules({
        method: 'ControllerExpandVolume',
        times: 1,
        effect: { do: 'loseReply', as: 'unavailable' },
      })
      const instance = fixture.start({ isAtomic })
      await fixture.request('100Gi')
      await fixture.waitUntil(
        () => instance.queueState()?.message?.includes('may still be expanding'),
        'the call without a response',
      )
      const at100 = { mark: '100Gi', alloc: '100Gi', quota: '100Gi' }
      const unexpandedFields = {
        cap: '10Gi',
        pvcap: '10Gi',
        state: 'ControllerResizeInProgress',
        ...RESIZING_CONDITIONS,
      }
      await expectView({ req: '100Gi', ...at100, ...unexpandedFields })
      await fixture.request('20Gi')
      await expectView({ req: '20Gi', ...at100, ...unexpandedFields })
      await fixture.waitForState('NodeResizePending')
      const expandedFields = { req: '20Gi', ...at100, cap: '10Gi', pvcap: '100Gi', preResize: '10Gi' }
      await expectView({ ...expandedFields, state: 'NodeResizePending', ...NODE_PENDING_CONDITIONS })
      await fixture.startNodeExpansion()
      await expectView({ ...expandedFields, state: 'NodeResizeInProgress', ...NODE_PENDING_CONDITIONS })
      await finishNodeExpansion('100Gi')
      await expectView({ req: '20Gi', ...at100, cap: '100Gi', pvcap: '100Gi', ...NO_CONDITIONS })
      await fixture.settle()
      expect(fixture.expandCalls()).toEqual([100 * 1024 ** 3, 20 * 1024 ** 3])
    })
  })
}
