// Kills the process before and after each of its first calls, or at random calls during a random sequence of actions, and
// starts another process, which must reach the same end state.
// Invariants: no single-node volume is published on two nodes, no volume is mounted on a node on which it is not
// published, and no volume is published without an attachment.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { type AttachingFixture, attachedName, createAttachingFixture, type StartOptions } from './attaching.fixture.ts'

interface Scenario {
  readonly title: string
  begin(fixture: AttachingFixture): Promise<void>
  /** Runs the node agents and user actions. Called repeatedly until the scenario is complete. */
  runActors(fixture: AttachingFixture): Promise<void>
  isComplete(fixture: AttachingFixture): Promise<boolean>
}

const isMounted = (fixture: AttachingFixture, nodeName: string) => fixture.mounts.get(nodeName)!.has(attachedName())
const isDetached = async (fixture: AttachingFixture) =>
  (await fixture.attachments()).length === 0 && fixture.publishedNodeIds().length === 0 && !isMounted(fixture, 'left')

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'a pod gets its volume',
    begin: async (fixture) => void (await fixture.createPod('web', 'left')),
    runActors: (fixture) => fixture.runAgents(),
    isComplete: async (fixture) => isMounted(fixture, 'left') && (await fixture.attachments()).length === 1,
  },
  {
    title: 'a pod gets its volume and is deleted afterwards',
    begin: async (fixture) => void (await fixture.createPod('web', 'left')),
    async runActors(fixture) {
      await fixture.runAgents()
      if (isMounted(fixture, 'left')) await fixture.deletePod('web')
    },
    isComplete: async (fixture) =>
      fixture.publishedNodeIds().length === 0 && fixture.fake.record.calls.length > 4 && isDetached(fixture),
  },
  {
    title: 'a volume moves to a pod on another node',
    async begin(fixture) {
      await fixture.createPod('first', 'left')
      await fixture.server.clock.advance(2_000)
      await fixture.createPod('second', 'right')
    },
    async runActors(fixture) {
      await fixture.runAgents()
      if (isMounted(fixture, 'left')) await fixture.deletePod('first')
    },
    isComplete: async (fixture) =>
      isMounted(fixture, 'right') && !isMounted(fixture, 'left') && fixture.publishedNodeIds().join() === 'id-right',
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
      await fixture.createPod('web', 'left')
    },
    async runActors(fixture) {
      await fixture.runAgents()
      const publishes = fixture.fake.record.calls.filter(({ method }) => method === 'ControllerPublishVolume')
      if (publishes.length > 1) await fixture.deletePod('web')
    },
    isComplete: async (fixture) =>
      fixture.fake.record.calls.some(({ method }) => method === 'ControllerPublishVolume') &&
      (await fixture.client.get(nodeKind, { name: 'left' })).status?.volumesInUse === undefined &&
      isDetached(fixture),
  },
]

describe.each([true, false])('after a crash (atomic commits: %s)', (isAtomic) => {
  it.each(SCENARIOS)('SYS-18 completes the scenario: $title', async (scenario) => {
    let kills = 0
    for (const when of ['before', 'after'] as const) {
      for (let call = 0; ; call++) {
        const fixture = await createAttachingFixture()
        await fixture.createVolume()
        await scenario.begin(fixture)
        const runActors = async () => {
          await scenario.runActors(fixture)
          await fixture.checkFinalizers()
        }
        const firstProcess = await fixture.start({ isAtomic, killAt: { call, when } })
        await fixture.waitUntil(
          async () => firstProcess.hasCrashed || (await scenario.isComplete(fixture)),
          `${when} ${call}`,
          runActors,
        )
        await fixture.settle()
        const wasKilled = firstProcess.hasCrashed
        if (wasKilled) {
          kills++
          await runActors() // agents and users continue without a controller
          await fixture.start({ isAtomic })
          await fixture.waitUntil(
            () => scenario.isComplete(fixture),
            `killed ${when} ${firstProcess.calls[call]}, call ${call}`,
            runActors,
          )
          await fixture.settle()
          expect(await scenario.isComplete(fixture), `killed ${when} ${firstProcess.calls[call]}, call ${call}`).toBe(
            true,
          )
        }
        await fixture.checkFinalizers()
        expect(fixture.violations, `killed ${when} ${firstProcess.calls[call]}, call ${call}`).toEqual([])
        await fixture.close()
        if (!wasKilled || call >= CALLS_MAX) break
      }
    }
    expect(kills).toBeGreaterThan(4)
  })
})

const CALLS_MAX = 24

describe('under a random sequence of pods, node events and driver failures', () => {
  it('SYS-18 publishes a volume on one node at a time, only with a finalizer, and converges', async () => {
    const actionArbitrary = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ do: fc.constant('createPod' as const), on: fc.constantFrom('left', 'right') }),
      },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('deletePod' as const) }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('runAgents' as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constant('advanceClock' as const), ms: fc.constantFrom(1_000, 60_000) }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), call: fc.nat(8), isAfter: fc.boolean() }) },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('recreateCsiNode' as const), on: fc.constantFrom('left', 'right') }),
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
        fc.array(actionArbitrary, { minLength: 5, maxLength: 25 }),
        fc.array(rule, { maxLength: 4 }),
        fc.boolean(),
        async (actions, rules, isAtomic) => {
          const fixture = await createAttachingFixture()
          await fixture.createVolume()
          fixture.fake.script.setRules(rules as never)
          let instance = await fixture.start({ isAtomic })
          const pods: string[] = []
          let podCount = 0
          for (const action of actions) {
            if (action.do === 'createPod') {
              pods.push(`pod-${++podCount}`)
              await fixture.createPod(`pod-${podCount}`, action.on)
            } else if (action.do === 'deletePod') await fixture.deletePod(pods.shift() ?? '')
            else if (action.do === 'runAgents') await fixture.runAgents()
            else if (action.do === 'advanceClock') await fixture.server.clock.advance(action.ms)
            else if (action.do === 'recreateCsiNode') await recreateCsiNode(fixture, action.on)
            else {
              if (!instance.hasCrashed) await instance.stop()
              const killAt: StartOptions['killAt'] = { call: action.call, when: action.isAfter ? 'after' : 'before' }
              instance = await fixture.start({ isAtomic, killAt })
            }
            for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
            await fixture.checkFinalizers()
          }
          if (!instance.hasCrashed) await instance.stop()
          await fixture.start({ isAtomic })
          const [oldestPod] = pods
          const desiredNode = oldestPod ? nodeOf(oldestPod, actions) : undefined
          const hasConverged = async () => {
            const nodes = (await fixture.attachments()).map(({ spec }) => spec.nodeName)
            const publishedNodes = fixture.publishedNodeIds().map((id) => id.slice('id-'.length))
            // The volume may stay on its first node while a pod on that node needs it.
            const neededNodes = new Set(pods.map((name) => nodeOf(name, actions)))
            if (desiredNode === undefined) return nodes.length === 0 && publishedNodes.length === 0
            return nodes.length === 1 && neededNodes.has(nodes[0]) && publishedNodes.join() === nodes.join()
          }
          await fixture.waitUntil(hasConverged, 'convergence', () => fixture.runAgents())
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
  actions.filter((action) => action.do === 'createPod')[Number(podName.slice('pod-'.length)) - 1]?.on

async function recreateCsiNode(fixture: AttachingFixture, nodeName: string): Promise<void> {
  const { spec } = await fixture.client.get(csiNodeKind, { name: nodeName })
  await fixture.client.delete(csiNodeKind, { name: nodeName })
  await fixture.settle()
  await fixture.client.create(csiNodeKind, { metadata: { name: nodeName }, spec } as never)
}
