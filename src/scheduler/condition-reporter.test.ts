import { expect, it } from 'vitest'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../api/status-error.ts'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import type { Client } from '../client/index.ts'
import type { Cache, EventRecorder } from '../runtime/index.ts'
import { createConditionReporter } from './condition-reporter.ts'

const KEY = 'default/web'

/** Each write waits until the test answers it. */
function aReporter() {
  const clock = manualClock()
  let pod: Pod = { metadata: { namespace: 'default', name: 'web', uid: 'u', resourceVersion: '1' } }
  const writes: { message: string; answer: (code?: number) => Promise<void> }[] = []
  const storedMessage = () => pod.status?.conditions?.[0]?.message
  const client = {
    patch: (_kind: unknown, _ref: unknown, { body }: { body: { status: NonNullable<Pod['status']> } }) =>
      new Promise((resolve, reject) => {
        const answer = async (code?: number) => {
          const resourceVersion = String(Number(pod.metadata.resourceVersion) + 1)
          pod = {
            ...pod,
            metadata: { ...pod.metadata, resourceVersion },
            ...(code ? {} : { status: body.status }),
          }
          if (code) reject(new ApiError(code, 'Conflict', 'changed meanwhile'))
          else resolve(pod)
          await clock.advance(0)
        }
        writes.push({ message: body.status.conditions?.[0]?.message ?? '', answer })
      }),
  }
  const reporter = createConditionReporter({
    client: client as unknown as Client,
    pods: { get: () => pod, learn: () => {} } as unknown as Cache<Pod>,
    clock,
    random: () => 0.5,
    log: silentLog,
    events: { record: () => {} } as unknown as EventRecorder,
  })
  const report = (message: string) => reporter.report(pod, KEY, { type: 'Warning', reason: 'Unschedulable', message })
  return { clock, writes, storedMessage, report }
}

it('CAP-12 writes the last report, even if the write of an earlier one conflicts and is retried', async () => {
  const { clock, writes, storedMessage, report } = aReporter()
  report('no claim')
  report('no room')
  expect(writes.map(({ message }) => message)).toEqual(['no claim'])
  await writes[0]!.answer(409)
  await clock.advance(60_000)
  expect(writes.map(({ message }) => message)).toEqual(['no claim', 'no room'])
  await writes[1]!.answer(409)
  await clock.advance(60_000)
  await writes[2]!.answer()
  await clock.advance(600_000)
  expect(writes.map(({ message }) => message)).toEqual(['no claim', 'no room', 'no room'])
  expect(storedMessage()).toBe('no room')
})
