import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { aWorld, type View, type World } from './expanding.fixture.ts'

const OUT_OF_RANGE = { do: 'fail', code: 'OUT_OF_RANGE', message: 'size not supported' } as const
const SETTLED = { conditions: [] }
const RESIZING = { conditions: ['Resizing'] }
const REFUSED = { conditions: ['ControllerResizeError', 'Resizing'] }
const AT_NODE = { conditions: ['FileSystemResizePending', 'Resizing'] }

let world: World
beforeEach(async () => {
  world = await aWorld()
  await world.aClaim('data', { size: '10Gi' })
})
afterEach(() => world.close())

/** `mark` is spec.allocatedResources as in KEP-1790; `alloc` and `state` are status.allocatedResources and its status. */
const expectView = async (expected: View) => expect(await world.view()).toEqual(expected)

async function nodeFinishes(size: string): Promise<void> {
  await world.nodeStarts()
  await world.nodeSucceeds(size)
  await world.until(async () => (await world.view()).before === undefined, 'the annotation to be removed')
}

// The writes of a step are one transaction, or single writes on a server without commits.
for (const isAtomic of [true, false]) {
  describe(`recovery from expansion failure (${isAtomic ? 'atomic commits' : 'single writes'})`, () => {
    /** A view between the writes of volume and claim exists only if they are two writes. */
    const between = (view: View): View[] => (isAtomic ? [] : [view])

    it('REX-5 case 1: an expansion to 100Gi fails and is retried with 20Gi', async () => {
      world.script({ method: 'ControllerExpandVolume', times: 1, effect: OUT_OF_RANGE })
      world.start({ isAtomic })
      await expectView({ req: '10Gi', mark: '10Gi', cap: '10Gi', pvcap: '10Gi', quota: '10Gi', ...SETTLED })
      await world.request('100Gi')
      await world.untilState('ControllerResizeInfeasible')
      const at10 = { cap: '10Gi', pvcap: '10Gi', quota: '100Gi' }
      const at100 = { req: '100Gi', mark: '100Gi', alloc: '100Gi', ...at10 }
      expect(world.steps.splice(0)).toEqual([
        { ...at100, state: 'ControllerResizeInProgress', ...RESIZING },
        { ...at100, state: 'ControllerResizeInfeasible', ...REFUSED },
      ])

      await world.request('20Gi')
      await expectView({ ...at100, req: '20Gi', state: 'ControllerResizeInfeasible', ...REFUSED })
      await world.untilState('NodeResizePending')
      const at20 = { req: '20Gi', mark: '100Gi', alloc: '20Gi', quota: '100Gi' }
      const grown = { cap: '10Gi', pvcap: '20Gi', before: '10Gi' }
      expect(world.steps.splice(0)).toEqual([
        { ...at20, ...at10, state: 'ControllerResizeInProgress', ...RESIZING },
        ...between({ ...at20, ...grown, state: 'ControllerResizeInProgress', ...RESIZING }),
        { ...at20, ...grown, state: 'NodeResizePending', ...AT_NODE },
      ])

      await world.nodeStarts()
      await expectView({ ...at20, ...grown, state: 'NodeResizeInProgress', ...AT_NODE })
      await nodeFinishes('20Gi')
      await expectView({ ...at20, cap: '20Gi', pvcap: '20Gi', ...SETTLED })
      expect(world.expandCalls()).toEqual([100 * 1024 ** 3, 20 * 1024 ** 3])
      expect(world.bytes()).toBe(20 * 1024 ** 3)
    })

    it('REX-5 case 2: a later expansion to 120Gi fails again', async () => {
      world.script({ method: 'ControllerExpandVolume', times: 1, effect: OUT_OF_RANGE })
      world.start({ isAtomic })
      await world.request('100Gi')
      await world.untilState('ControllerResizeInfeasible')
      await world.request('20Gi')
      await world.untilState('NodeResizePending')
      await nodeFinishes('20Gi')
      const rest = { cap: '20Gi', pvcap: '20Gi' }
      await expectView({ req: '20Gi', mark: '100Gi', alloc: '20Gi', ...rest, quota: '100Gi', ...SETTLED })
      await world.settle()
      world.steps.splice(0)

      world.driverReturns({ do: 'fail', code: 'INVALID_ARGUMENT' })
      await world.request('120Gi')
      await expectView({ req: '120Gi', mark: '120Gi', alloc: '20Gi', ...rest, quota: '120Gi', ...SETTLED })
      await world.untilState('ControllerResizeInfeasible')
      const at120 = { req: '120Gi', mark: '120Gi', alloc: '120Gi', ...rest, quota: '120Gi' }
      expect(world.steps).toEqual([
        { ...at120, state: 'ControllerResizeInProgress', ...RESIZING },
        { ...at120, state: 'ControllerResizeInfeasible', ...REFUSED },
      ])
    })

    it('REX-5 case 3: the request is lowered while the driver is still expanding', async () => {
      world.script({ method: 'ControllerExpandVolume', times: 1, effect: { do: 'fail', code: 'DEADLINE_EXCEEDED' } })
      const process = world.start({ isAtomic })
      await world.request('100Gi')
      await world.until(() => process.standing()?.because?.includes('may still be expanding'), 'a timed out call')
      const at100 = { mark: '100Gi', alloc: '100Gi', quota: '100Gi' }
      const before = { cap: '10Gi', pvcap: '10Gi', state: 'ControllerResizeInProgress', ...RESIZING }
      await expectView({ req: '100Gi', ...at100, ...before })
      await world.request('20Gi')
      await expectView({ req: '20Gi', ...at100, ...before })
      await world.untilState('NodeResizePending')
      const grown = { req: '20Gi', ...at100, cap: '10Gi', pvcap: '100Gi', before: '10Gi' }
      await expectView({ ...grown, state: 'NodeResizePending', ...AT_NODE })
      await world.nodeStarts()
      await expectView({ ...grown, state: 'NodeResizeInProgress', ...AT_NODE })
      await nodeFinishes('100Gi')
      await expectView({ req: '20Gi', ...at100, cap: '100Gi', pvcap: '100Gi', ...SETTLED })
      await world.settle()
      expect(world.expandCalls()).toEqual([100 * 1024 ** 3, 100 * 1024 ** 3])
    })
  })
}
