import { expect, it } from 'vitest'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../api/status-error.ts'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { createConditionReporter } from './condition-reporter.ts'

const KEY = 'default/web'

/** A server that takes its time: each write waits until the test has answered it. */
function aReporter() {
  const clock = manualClock()
  let pod: Pod = { metadata: { namespace: 'default', name: 'web', uid: 'u', resourceVersion: '1' } }
  const writes: { message: string; answer: (code?: number) => Promise<void> }[] = []
  const told = () => pod.status?.conditions?.[0]?.message
  const client: any = {
    patch: (_kind: unknown, _ref: unknown, { body }: any) =>
      new Promise((resolve, reject) => {
        const answer = async (code?: number) => {
          const resourceVersion = String(Number(pod.metadata.resourceVersion) + 1)
          pod = { ...pod, metadata: { ...pod.metadata, resourceVersion }, ...(code ? {} : { status: body.status }) }
          if (code) reject(new ApiError(code, 'Conflict', 'changed meanwhile'))
          else resolve(pod)
          await clock.advance(0)
        }
        writes.push({ message: body.status.conditions[0].message, answer })
      }),
  }
  const pods: any = { get: () => pod, learn: () => {} }
  const events: any = { record: () => {} }
  const reporter = createConditionReporter({ client, pods, clock, random: () => 0.5, log: silentLog, events })
  const say = (message: string) => reporter.report(pod, KEY, { reason: 'Unschedulable', message })
  return { clock, writes, told, say }
}

it('CAP-12 what is said last counts, also where what was said before is refused and late', async () => {
  const { clock, writes, told, say } = aReporter()
  say('no claim')
  say('no room')
  expect(writes.map(({ message }) => message)).toEqual(['no claim'])
  await writes[0]!.answer(409)
  await clock.advance(60_000)
  expect(writes.map(({ message }) => message)).toEqual(['no claim', 'no room'])
  await writes[1]!.answer(409)
  await clock.advance(60_000)
  await writes[2]!.answer()
  await clock.advance(600_000)
  expect(writes.map(({ message }) => message)).toEqual(['no claim', 'no room', 'no room'])
  expect(told()).toBe('no room')
})
