import { describe, expect, it } from 'vitest'
import { type PodInfo, podInfoOf } from '../../cluster/pod-info.ts'
import { aPod } from '../plugins.fixture.ts'
import { chooseCandidate } from './choose-candidate.ts'

const NOW_MS = Date.UTC(2026, 0, 1)

function victim(priority: number, ageMinutes = 0, fields: object = {}): PodInfo {
  const startTime = new Date(NOW_MS - ageMinutes * 60_000).toISOString()
  const pod = aPod({ priority })
  return podInfoOf({ ...pod, metadata: { ...pod.metadata, ...fields }, status: { startTime } })
}
const leaving = (priority: number) => victim(priority, 0, { deletionTimestamp: new Date(NOW_MS).toISOString() })

function choose(candidates: Record<string, readonly PodInfo[]>): string | undefined {
  const list = Object.entries(candidates).map(([nodeName, victims]) => ({ nodeName, victims }))
  const isTerminating = ({ pod }: PodInfo) => pod.metadata.deletionTimestamp !== undefined
  return chooseCandidate(list, { nowMs: NOW_MS, isTerminating })?.nodeName
}

describe('chooseCandidate', () => {
  it.each<[string, Record<string, readonly PodInfo[]>, string]>([
    ['a node whose victims are all leaving', { a: [victim(1)], b: [leaving(9)], c: [leaving(1), victim(0)] }, 'b'],
    ['a node on which no pod has to leave', { a: [victim(-9)], b: [] }, 'b'],
    [
      'the node whose most important victim has the lowest priority',
      { a: [victim(5)], b: [victim(4), victim(4), victim(4)] },
      'b',
    ],
    ['the node with the lowest sum of priorities', { a: [victim(4), victim(3)], b: [victim(4), victim(2)] }, 'b'],
    [
      'the node with fewer victims, even if their priorities are negative',
      { a: [victim(-1), victim(-9)], b: [victim(-1)] },
      'b',
    ],
    ['the node whose most important victim started last', { a: [victim(4, 9)], b: [victim(4, 2)] }, 'b'],
    [
      'the node by the earliest start of its most important victims, ignoring the others',
      { a: [victim(4, 2), victim(4, 8), victim(1, 1)], b: [victim(4, 3), victim(4, 4), victim(1, 60)] },
      'b',
    ],
    ['the first node if all else is equal', { a: [victim(4, 1)], b: [victim(4, 1)] }, 'a'],
  ])('SYS-27 chooses %s', (_case, candidates, expected) => {
    expect(choose(candidates)).toBe(expected)
  })

  it('SYS-27 returns undefined if there are no candidates', () => {
    expect(choose({})).toBeUndefined()
  })
})
