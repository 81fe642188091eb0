// Kills the process before and after every call it makes and starts another. The end state must be the same, and on the
// way no single-node volume may be published on a second node, none mounted where it is not published, and none
// published without an attachment for it.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { type AttachingFixture, createAttachingFixture, inUseName, type StartOptions } from './attaching.fixture.ts'

interface Scenario {
  readonly title: string
  begin(fixture: AttachingFixture): Promise<void>
  /** Repeated while waiting: node agents and user actions. */
  meanwhile(fixture: AttachingFixture): Promise<void>
  isOver(fixture: AttachingFixture): Promise<boolean>
}

const isMounted = (fixture: AttachingFixture, nodeName: string) => fixture.mounts.get(nodeName)!.has(inUseName())
const isEmpty = async (fixture: AttachingFixture) =>
  (await fixture.attachments()).length === 0 && fixture.publishedOn().length === 0 && !isMounted(fixture, 'left')

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'a pod gets its volume',
    begin: async (fixture) => void (await fixture.aPod('web', 'left')),
    meanwhile: (fixture) => fixture.agents(),
    isOver: async (fixture) => isMounted(fixture, 'left') && (await fixture.attachments()).length === 1,
  },
  {
    title: 'a pod gets its volume and is deleted',
    begin: async (fixture) => void (await fixture.aPod('web', 'left')),
    async meanwhile(fixture) {
      await fixture.agents()
      if (isMounted(fixture, 'left')) await fixture.deletePod('web')
    },
    isOver: async (fixture) =>
      fixture.publishedOn().length === 0 && fixture.fake.record.calls.length > 4 && isEmpty(fixture),
  },
  {
    title: 'a volume moves to a pod on another node',
    async begin(fixture) {
      await fixture.aPod('first', 'left')
      await fixture.server.clock.advance(2_000)
      await fixture.aPod('second', 'right')
    },
    async meanwhile(fixture) {
      await fixture.agents()
      if (isMounted(fixture, 'left')) await fixture.deletePod('first')
    },
    isOver: async (fixture) =>
      isMounted(fixture, 'right') && !isMounted(fixture, 'left') && fixture.publishedOn().join() === 'id-right',
  },
  {
    title: 'the driver fails and loses responses, and the pod is deleted',
    async begin(fixture) {
      fixture.fake.script.setRules([
        { method: 'ControllerPublishVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
        { method: 'ControllerPublishVolume', nth: 2, effect: { do: 'fail', code: 'ABORTED' } },
        { method: 'ControllerUnpublishVolume', nth: 1, effect: { do: 'fail', code: 'INTERNAL' } },
        { method: 'ControllerUnpublishVolume', nth: 2, effect: { do: 'loseReply', as: 'unavailable' } },
      ])
      await fixture.aPod('web', 'left')
    },
    async meanwhile(fixture) {
      await fixture.agents()
      const publishes = fixture.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')
      if (publishes.length > 1) await fixture.deletePod('web')
    },
    isOver: async (fixture) =>
      fixture.fake.record.calls.some(({ method }) => method === 'ControllerPublishVolume') &&
      (await fixture.client.get(nodeKind, { name: 'left' })).status?.volumesInUse === undefined &&
      isEmpty(fixture),
  },
]

describe.each([true, false])('a crash at any call (atomic commits: %s)', (isAtomic) => {
  it.each(SCENARIOS)('SYS-18 $title', async (scenario) => {
    let kills = 0
    for (const when of ['before', 'after'] as const) {
      for (let call = 0; ; call++) {
        const fixture = await createAttachingFixture()
        await fixture.aVolume()
        await scenario.begin(fixture)
        const meanwhile = async () => {
          await scenario.meanwhile(fixture)
          await fixture.checkFinalizers()
        }
        const first = await fixture.start({ isAtomic, killAt: { call, when } })
        await fixture.until(async () => first.isDead || (await scenario.isOver(fixture)), `${when} ${call}`, meanwhile)
        await fixture.settle() // the last writes
        const wasKilled = first.isDead
        if (wasKilled) {
          kills++
          await meanwhile() // agents and users continue without a controller
          await fixture.start({ isAtomic })
          await fixture.until(
            () => scenario.isOver(fixture),
            `killed ${when} ${first.calls[call]}, call ${call}`,
            meanwhile,
          )
          await fixture.settle()
          expect(await scenario.isOver(fixture), `killed ${when} ${first.calls[call]}, call ${call}`).toBe(true)
        }
        await fixture.checkFinalizers()
        expect(fixture.violations, `killed ${when} ${first.calls[call]}, call ${call}`).toEqual([])
        await fixture.close()
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
          const fixture = await createAttachingFixture()
          await fixture.aVolume()
          fixture.fake.script.setRules(rules as never)
          let process = await fixture.start({ isAtomic })
          const pods: string[] = []
          let podCount = 0
          for (const one of actions) {
            if (one.do === 'pod') {
              pods.push(`pod-${++podCount}`)
              await fixture.aPod(`pod-${podCount}`, one.on)
            } else if (one.do === 'podGone') await fixture.deletePod(pods.shift() ?? '')
            else if (one.do === 'agents') await fixture.agents()
            else if (one.do === 'time') await fixture.server.clock.advance(one.ms)
            else if (one.do === 'csiNodeGone') await recreateCsiNode(fixture, one.on)
            else {
              if (!process.isDead) await process.stop()
              const killAt: StartOptions['killAt'] = { call: one.call, when: one.isAfter ? 'after' : 'before' }
              process = await fixture.start({ isAtomic, killAt })
            }
            for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
            await fixture.checkFinalizers()
          }
          if (!process.isDead) await process.stop()
          await fixture.start({ isAtomic })
          const [oldest] = pods
          const desired = oldest ? nodeOf(oldest, actions) : undefined
          const isRight = async () => {
            const nodes = (await fixture.attachments()).map(({ spec }) => spec.nodeName)
            const published = fixture.publishedOn().map((id) => id.slice('id-'.length))
            // The node that got the volume first may keep it while a pod there needs it.
            const needed = new Set(pods.map((name) => nodeOf(name, actions)))
            if (desired === undefined) return nodes.length === 0 && published.length === 0
            return nodes.length === 1 && needed.has(nodes[0]) && published.join() === nodes.join()
          }
          await fixture.until(isRight, 'convergence', () => fixture.agents())
          await fixture.checkFinalizers()
          expect(fixture.violations).toEqual([])
          expect(fixture.fake.record.overlaps).toEqual([])
          await fixture.close()
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
async function recreateCsiNode(fixture: AttachingFixture, nodeName: string): Promise<void> {
  const { spec } = await fixture.client.get(csiNodeKind, { name: nodeName })
  await fixture.client.delete(csiNodeKind, { name: nodeName })
  await fixture.settle()
  await fixture.client.create(csiNodeKind, { metadata: { name: nodeName }, spec } as never)
}
