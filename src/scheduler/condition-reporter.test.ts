import { describe, expect, it } from 'vitest'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../api/status-error.ts'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import type { Client } from '../client/index.ts'
import type { Cache, EventRecorder } from '../runtime/index.ts'
import { createConditionReporter } from './condition-reporter.ts'

const KEY = 'default/web'

/** Creates a reporter whose writes stay in flight until the test completes them. */
function createReporter() {
  const clock = manualClock()
  let pod: Pod = { metadata: { namespace: 'default', name: 'web', uid: 'u', resourceVersion: '1' } }
  const writes: { message: string; complete: (code?: number) => Promise<void> }[] = []
  const storedMessage = () => pod.status?.conditions?.[0]?.message
  const client = {
    patch: (_kind: unknown, _ref: unknown, { body }: { body: { status: NonNullable<Pod['status']> } }) =>
      new Promise((resolve, reject) => {
        const complete = async (code?: number) => {
          const resourceVersion = String(Number(pod.metadata.resourceVersion) + 1)
          pod = { ...pod, metadata: { ...pod.metadata, resourceVersion } }
          if (code) reject(new ApiError(code, 'Conflict', 'the object has been modified'))
          else {
            pod = { ...pod, status: body.status }
            resolve(pod)
          }
          await clock.advance(0)
        }
        writes.push({ message: body.status.conditions?.[0]?.message ?? '', complete })
      }),
  }
  const reporter = createConditionReporter({
    client: client as unknown as Client,
    pods: { get: () => pod, applyWriteResult: () => {} } as unknown as Cache<Pod>,
    clock,
    random: () => 0.5,
    log: silentLog,
    events: { record: () => {} } as unknown as EventRecorder,
  })
  const report = (message: string) => reporter.report(pod, KEY, { type: 'Warning', reason: 'Unschedulable', message })
  return { clock, writes, storedMessage, report }
}

describe('the condition reporter', () => {
  it('CAP-12 writes the last report if the write of an earlier one conflicts', async () => {
    const { clock, writes, storedMessage, report } = createReporter()
    report('claim not found')
    report('insufficient storage')
    expect(writes.map(({ message }) => message)).toEqual(['claim not found'])
    await writes[0]!.complete(409)
    await clock.advance(60_000)
    expect(writes.map(({ message }) => message)).toEqual(['claim not found', 'insufficient storage'])
    await writes[1]!.complete(409)
    await clock.advance(60_000)
    await writes[2]!.complete()
    await clock.advance(600_000)
    expect(writes.map(({ message }) => message)).toEqual([
      'claim not found',
      'insufficient storage',
      'insufficient storage',
    ])
    expect(storedMessage()).toBe('insufficient storage')
  })
})
