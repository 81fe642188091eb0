import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { podInfo } from './cluster/pod-info.ts'
import type { Hint, QueueingHint } from './framework/cluster-events.ts'
import type { Plugin } from './framework/plugin.ts'
import { SKIP, unschedulable } from './framework/status.ts'
import { SchedulingQueue } from './queue/queue.ts'
import { createQueueingHints } from './queueing-hints.ts'

const pluginWith = (name: string, ...events: QueueingHint[]): Plugin => ({ name, events, preFilter: () => SKIP })
const onNode = (hint: () => Hint): QueueingHint<'node'> => ({
  on: 'node',
  scope: 'class',
  keysOfPod: () => ['node'],
  keysOfEvent: () => ['node'],
  hint,
})

/** A queue with unschedulable pods of one equivalence class that the given plugins rejected. */
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
    queue.add(podInfo({ metadata: { namespace: 'ns', name, uid: name }, spec: { containers: [] } }))
    const pod = queue.pop()!
    queue.addUnschedulable(pod, rejection, hints.keysOf(pod.info, rejection))
  }
  const states = () => queue.statuses().map(({ state }) => state)
  return { queue, states, emitNode: () => hints.dispatch({ on: 'node' }, queue) }
}

describe('queueing hints', () => {
  it('CAP-12 run once per event if several plugins that rejected the pod share them', () => {
    const hint = vi.fn((): Hint => 'skip')
    const shared = onNode(hint)
    setUp([pluginWith('A', shared), pluginWith('B', shared)]).emitNode()
    expect(hint).toHaveBeenCalledTimes(1)
  })

  it('CAP-12 requeue a pod only for events of the plugins that rejected it', () => {
    const plugins = [
      pluginWith(
        'A',
        onNode(() => 'queue'),
      ),
      pluginWith('B'),
    ]
    const other = setUp(plugins, { rejectedBy: ['B'] })
    other.emitNode()
    expect(other.states()).toEqual(['unschedulable'])
    const own = setUp(plugins, { rejectedBy: ['A'] })
    own.emitNode()
    expect(own.states()).toEqual(['active'])
  })

  it('CAP-12 requeue one pod of an equivalence class, even if hints of two plugins apply', () => {
    const plugins = ['A', 'B'].map((name) =>
      pluginWith(
        name,
        onNode(() => 'queue'),
      ),
    )
    const { emitNode, states } = setUp(plugins, { pods: ['a', 'b', 'c'] })
    emitNode()
    expect(states().filter((state) => state === 'active')).toHaveLength(1)
  })

  it('CAP-12 add a rejection of another plugin to the events the pod waits for', () => {
    const status = unschedulable({ type: 'Full', message: 'full' })
    let isResolved = false
    const resolving = onNode(() => (isResolved ? 'queue' : 'skip'))
    const plugins = [
      pluginWith(
        'A',
        onNode(() => ({ plugin: 'B', status })),
      ),
      pluginWith('B', resolving),
    ]
    const { emitNode, states, queue } = setUp(plugins, { rejectedBy: ['A'] })
    emitNode()
    expect(queue.statuses()[0]?.rejectedBy).toEqual(['A', 'B'])
    isResolved = true
    emitNode()
    expect(states()).toEqual(['active'])
  })
})

it('the core imports no plugin: only the registry and direct placement do', () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  const core = files.filter((file) => /^[^.]+\.ts$/.test(file) && !file.startsWith('plugins/'))
  const importing = core.filter((file) =>
    /from '[^']*plugins\//.test(readFileSync(`${import.meta.dirname}/${file}`, 'utf8')),
  )
  expect(importing.sort()).toEqual(['direct-placement.ts', 'scheduler.ts'])
})
