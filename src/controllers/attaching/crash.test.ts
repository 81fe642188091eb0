// Kills the process before and after every call it makes and starts another. The end state must be the same, and on the
// way no single-node volume may be published on a second node, none mounted where it is not published, and none
// published without an attachment that holds it.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { aWorld, inUseName, type StartOptions, type World } from './attaching.fixture.ts'

interface Scenario {
  readonly title: string
  begin(world: World): Promise<void>
  /** Repeated while waiting: node agents and user actions. */
  meanwhile(world: World): Promise<void>
  isOver(world: World): Promise<boolean>
}

const isMounted = (world: World, nodeName: string) => world.mounts.get(nodeName)!.has(inUseName())
const isEmpty = async (world: World) =>
  (await world.attachments()).length === 0 && world.publishedOn().length === 0 && !isMounted(world, 'left')

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'a pod gets its volume',
    begin: async (world) => void (await world.aPod('web', 'left')),
    meanwhile: (world) => world.agents(),
    isOver: async (world) => isMounted(world, 'left') && (await world.attachments()).length === 1,
  },
  {
    title: 'a pod gets its volume and is deleted',
    begin: async (world) => void (await world.aPod('web', 'left')),
    async meanwhile(world) {
      await world.agents()
      if (isMounted(world, 'left')) await world.deletePod('web')
    },
    isOver: async (world) => world.publishedOn().length === 0 && world.fake.record.calls.length > 4 && isEmpty(world),
  },
  {
    title: 'a volume moves to a pod on another node',
    async begin(world) {
      await world.aPod('first', 'left')
      await world.server.clock.advance(2_000)
      await world.aPod('second', 'right')
    },
    async meanwhile(world) {
      await world.agents()
      if (isMounted(world, 'left')) await world.deletePod('first')
    },
    isOver: async (world) =>
      isMounted(world, 'right') && !isMounted(world, 'left') && world.publishedOn().join() === 'id-right',
  },
  {
    title: 'the driver fails and loses responses, and the pod is deleted',
    async begin(world) {
      world.fake.script.setRules([
        { method: 'ControllerPublishVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
        { method: 'ControllerPublishVolume', nth: 2, effect: { do: 'fail', code: 'ABORTED' } },
        { method: 'ControllerUnpublishVolume', nth: 1, effect: { do: 'fail', code: 'INTERNAL' } },
        { method: 'ControllerUnpublishVolume', nth: 2, effect: { do: 'loseReply', as: 'unavailable' } },
      ])
      await world.aPod('web', 'left')
    },
    async meanwhile(world) {
      await world.agents()
      const publishes = world.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')
      if (publishes.length > 1) await world.deletePod('web')
    },
    isOver: async (world) =>
      world.fake.record.calls.some(({ method }) => method === 'ControllerPublishVolume') &&
      (await world.client.get(nodeKind, { name: 'left' })).status?.volumesInUse === undefined &&
      isEmpty(world),
  },
]

describe.each([true, false])('a crash at any call (atomic commits: %s)', (isAtomic) => {
  it.each(SCENARIOS)('SYS-18 $title', async (scenario) => {
    let kills = 0
    for (const when of ['before', 'after'] as const) {
      for (let call = 0; ; call++) {
        const world = await aWorld()
        await world.aVolume()
        await scenario.begin(world)
        const meanwhile = async () => {
          await scenario.meanwhile(world)
          await world.checkFinalizers()
        }
        const first = await world.start({ isAtomic, killAt: { call, when } })
        await world.until(async () => first.isDead || (await scenario.isOver(world)), `${when} ${call}`, meanwhile)
        await world.settle() // the last writes
        const wasKilled = first.isDead
        if (wasKilled) {
          kills++
          await meanwhile() // agents and users continue without a controller
          await world.start({ isAtomic })
          await world.until(
            () => scenario.isOver(world),
            `killed ${when} ${first.calls[call]}, call ${call}`,
            meanwhile,
          )
          await world.settle()
          expect(await scenario.isOver(world), `killed ${when} ${first.calls[call]}, call ${call}`).toBe(true)
        }
        await world.checkFinalizers()
        expect(world.violations, `killed ${when} ${first.calls[call]}, call ${call}`).toEqual([])
        await world.close()
        if (!wasKilled || call >= CALLS_MAX) break
      }
    }
    expect(kills).toBeGreaterThan(4)
  })
})

const CALLS_MAX = 24

describe('any sequence of pods, node events and driver failures', () => {
  it('SYS-18 publishes no single-node volume twice and none without a finalizer, and converges', async () => {
    const action = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('pod' as const), on: fc.constantFrom('left', 'right') }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('podGone' as const) }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('agents' as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.constantFrom(1_000, 60_000) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), call: fc.nat(8), isAfter: fc.boolean() }) },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('csiNodeGone' as const), on: fc.constantFrom('left', 'right') }),
      },
    )
    const failure = fc.constantFrom('UNAVAILABLE', 'INTERNAL', 'ABORTED', 'DEADLINE_EXCEEDED', 'FAILED_PRECONDITION')
    const rule = fc.record({
      method: fc.constantFrom('ControllerPublishVolume', 'ControllerUnpublishVolume'),
      nth: fc.integer({ min: 1, max: 5 }),
      effect: fc.oneof(
        failure.map((code) => ({ do: 'fail' as const, code })),
        fc.constant({ do: 'loseReply' as const, as: 'unavailable' as const }),
      ),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 5, maxLength: 25 }),
        fc.array(rule, { maxLength: 4 }),
        fc.boolean(),
        async (actions, rules, isAtomic) => {
          const world = await aWorld()
          await world.aVolume()
          world.fake.script.setRules(rules as never)
          let process = await world.start({ isAtomic })
          const pods: string[] = []
          let made = 0
          for (const one of actions) {
            if (one.do === 'pod') {
              pods.push(`pod-${++made}`)
              await world.aPod(`pod-${made}`, one.on)
            } else if (one.do === 'podGone') await world.deletePod(pods.shift() ?? '')
            else if (one.do === 'agents') await world.agents()
            else if (one.do === 'time') await world.server.clock.advance(one.ms)
            else if (one.do === 'csiNodeGone') await recreateCsiNode(world, one.on)
            else {
              if (!process.isDead) await process.stop()
              const killAt: StartOptions['killAt'] = { call: one.call, when: one.isAfter ? 'after' : 'before' }
              process = await world.start({ isAtomic, killAt })
            }
            for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
            await world.checkFinalizers()
          }
          if (!process.isDead) await process.stop()
          await world.start({ isAtomic })
          const [oldest] = pods
          const wanted = oldest ? nodeOf(oldest, actions) : undefined
          const isRight = async () => {
            const nodes = (await world.attachments()).map(({ spec }) => spec.nodeName)
            const published = world.publishedOn().map((id) => id.slice('id-'.length))
            // The node that got the volume first may keep it while a pod there needs it.
            const needed = new Set(pods.map((name) => nodeOf(name, actions)))
            if (wanted === undefined) return nodes.length === 0 && published.length === 0
            return nodes.length === 1 && needed.has(nodes[0]) && published.join() === nodes.join()
          }
          await world.until(isRight, 'convergence', () => world.agents())
          await world.checkFinalizers()
          expect(world.violations).toEqual([])
          expect(world.fake.record.overlaps).toEqual([])
          await world.close()
        },
      ),
      { numRuns: 60 },
    )
  }, 120_000)
})

type Action = { readonly do: string; readonly on?: string }

const nodeOf = (podName: string, actions: readonly Action[]): string | undefined =>
  actions.filter((one) => one.do === 'pod')[Number(podName.slice('pod-'.length)) - 1]?.on

/** As when the driver's pod restarts: the CSINode is missing for a moment. */
async function recreateCsiNode(world: World, nodeName: string): Promise<void> {
  const { spec } = await world.client.get(csiNodeKind, { name: nodeName })
  await world.client.delete(csiNodeKind, { name: nodeName })
  await world.settle()
  await world.client.create(csiNodeKind, { metadata: { name: nodeName }, spec } as never)
}
