import { describe, expect, it } from 'vitest'
import { forbidden, unavailable } from '../../../api/status-error.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import type { DiagnoseResult, Diagnosis } from '../../../diagnosis/index.ts'
import { followObject } from './follow.ts'

const subject = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' }
const diagnosed = (state: Diagnosis['state'], message: string): DiagnoseResult => ({
  is: 'diagnosed',
  diagnosis: { subject, state, reason: 'Reason', message },
})

/** Follows an object with these results of reads, which take `readMs` each. Returns the printed lines, the pauses and the outcome. */
async function follow(reads: readonly (DiagnoseResult | Error)[], { readMs = 0 } = {}) {
  const lines: string[] = []
  const pauses: number[] = []
  const remaining = [...reads]
  let nowMs = 0
  const clock = {
    ...manualClock(),
    monotonicMs: () => nowMs,
    async sleep(ms: number) {
      pauses.push(ms)
      nowMs += ms
    },
  }
  const result = followObject({
    async diagnose() {
      nowMs += readMs
      const read = remaining.shift()!
      if (read instanceof Error) throw read
      return read
    },
    formatForComparison: ({ message }) => message.replace(/\d+ s/, ''),
    print: ({ message }) => lines.push(message),
    note: (message) => lines.push(`note: ${message}`),
    clock,
    signal: new AbortController().signal,
  })
  const [outcome] = await Promise.allSettled([result])
  return { lines, pauses, outcome }
}

describe('followObject', () => {
  it('PLUS-1 prints only changes, until the object is ready', async () => {
    const { lines, pauses, outcome } = await follow([
      diagnosed('waiting', 'no answer for 1 s'),
      diagnosed('waiting', 'no answer for 3 s'),
      diagnosed('failed', 'the pool is full'),
      diagnosed('ready', 'bound'),
    ])
    expect(lines).toEqual(['no answer for 1 s', 'the pool is full', 'bound'])
    expect(pauses).toEqual([2_000, 2_000, 2_000])
    expect(outcome).toMatchObject({ value: { is: 'diagnosed', diagnosis: { state: 'ready' } } })
  })

  it('PLUS-1 waits while the server is unavailable, and prints this once', async () => {
    const unreachable = unavailable('connect ECONNREFUSED')
    const { lines } = await follow([
      diagnosed('waiting', 'a'),
      unreachable,
      unreachable,
      diagnosed('waiting', 'a'),
      diagnosed('ready', 'b'),
    ])
    expect(lines).toEqual([
      'a',
      'note: the server is unavailable or overloaded; retrying: connect ECONNREFUSED',
      'note: the server is available again',
      'b',
    ])
  })

  it('PLUS-1 rejects if the first read fails, and if a later read fails for another reason', async () => {
    const unreachable = unavailable('connect ECONNREFUSED')
    expect((await follow([unreachable])).outcome).toEqual({ status: 'rejected', reason: unreachable })
    const denied = forbidden({ group: '', plural: 'pods' }, '', 'no')
    const { outcome } = await follow([diagnosed('waiting', 'a'), denied])
    expect(outcome).toEqual({ status: 'rejected', reason: denied })
  })

  it('PLUS-1 returns when the object no longer exists', async () => {
    const { outcome } = await follow([diagnosed('waiting', 'a'), { is: 'not found', similarNames: [] }])
    expect(outcome).toMatchObject({ value: { is: 'not found' } })
  })

  it('PLUS-1 pauses longer if reads take long', async () => {
    const { pauses } = await follow([diagnosed('waiting', 'a'), diagnosed('ready', 'b')], { readMs: 3_000 })
    expect(pauses).toEqual([15_000])
  })
})
