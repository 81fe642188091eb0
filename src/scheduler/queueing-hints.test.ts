import { describe, expect, it, vi } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { podInfoOf } from './cluster/pod-info.ts'
import type { Hint, QueueingHint } from './framework/cluster-events.ts'
import type { Plugin } from './framework/plugin.ts'
import { SKIP, unschedulable } from './framework/status.ts'
import { SchedulingQueue } from './queue/queue.ts'
import { createQueueingHints } from './queueing-hints.ts'

const aPlugin = (name: string, ...events: QueueingHint[]): Plugin => ({ name, events, preFilter: () => SKIP })
const aNodeHint = (hint: () => Hint): QueueingHint<'node'> => ({
  on: 'node',
  scope: 'class',
  keysOfPod: () => ['node'],
  keysOfEvent: () => ['node'],
  hint,
})

/** Creates a queue with unschedulable pods of one equivalence class. */
function setUp(plugins: readonly Plugin[], { rejectedBy = plugins.map(({ name }) => name), pods = ['a'] } = {}) {
  const queue = new SchedulingQueue({ clock: manualClock(), random: () => 0.5 })
  const hints = createQueueingHints(plugins, () => undefined)
  const rejection = {
    message: 'full',
    rejectedBy: new Set(rejectedBy),
    reasons: new Set<string>(),
    signature: 'same',
  }
  for (const name of pods) {
    queue.add(podInfoOf({ metadata: { namespace: 'ns', name, uid: name }, spec: { containers: [] } }))
    const pod = queue.pop()!
    queue.addUnschedulable(pod, rejection, hints.keysOf(pod.info, rejection))
  }
  const states = () => queue.statuses().map(({ state }) => state)
  return { queue, states, emitNode: () => hints.dispatch({ on: 'node' }, queue) }
}

describe('queueing hints', () => {
  it('run once per event if several plugins share them', () => {
    const hint = vi.fn((): Hint => 'skip')
    const sharedHint = aNodeHint(hint)
    setUp([aPlugin('A', sharedHint), aPlugin('B', sharedHint)]).emitNode()
    expect(hint).toHaveBeenCalledTimes(1)
  })

  it('CAP-12 requeue a pod only for events of the plugins that rejected it', () => {
    const plugins = [
      aPlugin(
        'A',
        aNodeHint(() => 'queue'),
      ),
      aPlugin('B'),
    ]
    const podRejectedByB = setUp(plugins, { rejectedBy: ['B'] })
    podRejectedByB.emitNode()
    expect(podRejectedByB.states()).toEqual(['unschedulable'])
    const podRejectedByA = setUp(plugins, { rejectedBy: ['A'] })
    podRejectedByA.emitNode()
    expect(podRejectedByA.states()).toEqual(['active'])
  })

  it('CAP-12 requeue one pod of an equivalence class, even if hints of two plugins apply', () => {
    const plugins = ['A', 'B'].map((name) =>
      aPlugin(
        name,
        aNodeHint(() => 'queue'),
      ),
    )
    const { emitNode, states } = setUp(plugins, { pods: ['a', 'b', 'c'] })
    emitNode()
    expect(states().filter((state) => state === 'active')).toHaveLength(1)
  })

  it('CAP-12 add the rejection of another plugin, whose hints then apply to the pod', () => {
    const status = unschedulable({ type: 'Full', message: 'full' })
    let isResolved = false
    const hintOfB = aNodeHint(() => (isResolved ? 'queue' : 'skip'))
    const plugins = [
      aPlugin(
        'A',
        aNodeHint(() => ({ plugin: 'B', status })),
      ),
      aPlugin('B', hintOfB),
    ]
    const { emitNode, states, queue } = setUp(plugins, { rejectedBy: ['A'] })
    emitNode()
    expect(queue.statuses()[0]?.rejectedBy).toEqual(['A', 'B'])
    isResolved = true
    emitNode()
    expect(states()).toEqual(['active'])
  })
})
