import { describe, expect, it } from 'vitest'
import { ChangeLog } from './change-log.ts'
import type { Version } from './version.ts'

/** Creates a log from changes such as `a@1` and `b@5†` (a tombstone), which are appended at `nowMs`. */
function createLog(changes: string, { keepMs = 1_000, entriesMax = 1_000, nowMs = 0 } = {}) {
  const log = new ChangeLog({ keepMs, entriesMax, bytesMax: Number.POSITIVE_INFINITY, floor: 0 })
  const newest = new Map<string, Version>()
  const add = (change: string, atMs: number) => {
    const [, key = '', revision, tombstone] = /^(\w+)@(\d+)(†?)$/.exec(change) ?? []
    const version: Version = {
      key,
      revision: Number(revision),
      createRevision: 1,
      expiresAtMs: undefined,
      isDeleted: tombstone === '†',
      checksum: 0,
      valueBytes: 0,
      previous: newest.get(key),
    }
    newest.set(key, version)
    log.append(version, atMs)
  }
  for (const change of changes.split(' ')) add(change, nowMs)
  return { log, add }
}

const format = (versions: Version[]) =>
  versions.map(({ key, revision, isDeleted }) => `${key}@${revision}${isDeleted ? '†' : ''}`).join(' ')

const COMPACT_ALL = { nowMs: 1_000, revisionMax: 100, dropsMax: 100 }

describe('ChangeLog', () => {
  it('retires changes in order and drops the versions that they supersede', () => {
    const { log } = createLog('a@1 b@2 a@4 b@5†')
    const compactUpTo = (revisionMax: number) => format(log.compact({ ...COMPACT_ALL, revisionMax }))
    expect(log.entries).toBe(3)
    expect([compactUpTo(2), log.floor, log.entries]).toEqual(['', 2, 3])
    expect([compactUpTo(4), log.floor, log.entries]).toEqual(['a@1', 4, 2])
    expect([compactUpTo(5), log.floor, log.entries]).toEqual(['b@2 b@5†', 5, 0])
    expect(log.dueAtMs()).toBeUndefined()
  })

  it('drops a tombstone once if its key is created again', () => {
    const { log } = createLog('a@1 a@2† a@3 a@4')
    expect(format(log.compact(COMPACT_ALL))).toBe('a@1 a@2† a@3')
    expect(log.entries).toBe(0)
  })

  it('keeps changes for keepMs after the last change of their age group', () => {
    const { log, add } = createLog('a@1 a@2')
    add('a@3', 50)
    expect(log.dueAtMs()).toBe(1_050)
    expect(format(log.compact({ ...COMPACT_ALL, nowMs: 1_049 }))).toBe('')
    expect(log.floor).toBe(0)
    expect(format(log.compact({ ...COMPACT_ALL, nowMs: 1_050 }))).toBe('a@1 a@2')
  })

  it('keeps at most entriesMax entries, regardless of their age', () => {
    const { log } = createLog('a@1 a@2 a@3 a@4 a@5', { entriesMax: 2 })
    expect(log.dueAtMs()).toBe(Number.NEGATIVE_INFINITY)
    expect(format(log.compact({ ...COMPACT_ALL, nowMs: 0 }))).toBe('a@1 a@2')
    expect([log.floor, log.entries, log.dueAtMs()]).toEqual([3, 2, 1_000])
  })

  it('bounds the number of creates, which supersede no version', () => {
    const changes = Array.from({ length: 50 }, (_, index) => `k${index}@${index + 1}`).join(' ')
    const { log } = createLog(changes, { entriesMax: 3 })
    log.compact({ ...COMPACT_ALL, nowMs: 0 })
    expect([log.length, log.floor]).toEqual([30, 20])
  })

  it('drops at most dropsMax versions per call', () => {
    const { log } = createLog('a@1 a@2 a@3 a@4 a@5')
    expect(format(log.compact({ ...COMPACT_ALL, dropsMax: 2 }))).toBe('a@1 a@2')
    expect(log.floor).toBe(3)
    expect(format(log.compact({ ...COMPACT_ALL, dropsMax: 2 }))).toBe('a@3 a@4')
  })

  it('finds the first change after a revision, before and after compaction', () => {
    const { log } = createLog('a@2 a@4 b@4 a@6')
    const firstAfter = (revision: number) => log.versionAt(log.positionAfter(revision))?.revision
    expect([firstAfter(0), firstAfter(2), firstAfter(3), firstAfter(4), firstAfter(6)]).toEqual([2, 4, 4, 6, undefined])
    log.compact({ ...COMPACT_ALL, revisionMax: 4 })
    expect([firstAfter(4), firstAfter(6)]).toEqual([6, undefined])
  })
})
