import { describe, expect, it } from 'vitest'
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { ChunkEncoder } from './chunk-encoder.ts'
import { decodeRecords, ownerInLine, timeInLine } from './decode-records.ts'
import { type ActivityRecord, ownerOf, timeOf } from './journal-record.ts'
import { TemplateParts, Templates } from './templates.ts'

const attempt: Activity = {
  ...{
    start: '2026-01-01T00:00:00.012000Z',
    durationMs: 1.5,
    result: 'Retry',
    reason: 'Full',
    message: 'disk "a"\nis full',
  },
  ...{ object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders', uid: 'u-1' } },
  ...{ component: 'provisioner', operation: 'Provision', attempt: 2 },
}
const { uid: _, ...nameOnly } = attempt.object!
const call: Activity = {
  ...{ start: '2026-01-01T00:00:01.000000Z', durationMs: 5, result: 'OK', driver: 'disk.example' },
  ...{ method: 'CreateVolume', volume: 'vol "1" é' },
}
const ACTIVITIES: Readonly<Record<string, Activity>> = {
  'an attempt': attempt,
  'an attempt on an object without a uid': { ...attempt, object: nameOnly },
  'an attempt on an object without a namespace': {
    ...attempt,
    object: { kind: 'PersistentVolume', name: 'v', uid: 'u-2' },
  },
  'an attempt with unusual fields': { ...attempt, object: { ...attempt.object!, fieldPath: 'spec' } },
  'an attempt without a number': { start: attempt.start, durationMs: 1, result: 'Done', object: attempt.object },
  'a call': call,
  'a call with a message': { ...call, result: 'Internal', message: 'no' },
}

/** Returns the lines of a chunk. */
function encode(records: readonly ActivityRecord[]): string[] {
  const encoder = new ChunkEncoder()
  for (const record of records) encoder.addActivity(record)
  return Buffer.from(encoder.end()).toString('utf8').trimEnd().split('\n')
}

describe('the records of the journal', () => {
  for (const [name, activity] of Object.entries(ACTIVITIES)) {
    it(`PLUS-6 are the same after encoding and decoding: ${name}`, () => {
      const record: ActivityRecord = { process: 'stowage@a:1', activity }
      const lines = encode([record])
      expect(decodeRecords(lines.join('\n'))).toEqual([record])
      expect(timeInLine(lines.at(-1)!, lines[0]!)).toBe(timeOf(record))
    })
  }

  it('PLUS-6 share a template, and have their owner in the line', () => {
    const records = ['a', 'b', 'c'].map((volume) => ({ process: 'p', activity: { ...call, volume } }))
    const lines = encode(records)
    expect(lines).toHaveLength(4)
    expect(lines.map(ownerInLine)).toEqual([undefined, ...records.map(ownerOf)])
  })

  it('PLUS-6 keep their templates when chunks are concatenated', () => {
    const chunks = [call, { ...call, result: 'Aborted' }].map((activity) => [{ process: 'p', activity }])
    const text = chunks.map((chunk) => `${encode(chunk).join('\n')}\n`).join('')
    expect(decodeRecords(text)).toEqual(chunks.flat())
  })

  it('PLUS-6 are decoded only if their line is wanted, with the template that precedes them', () => {
    const records = ['a', 'b'].map((volume) => ({ process: 'p', activity: { ...call, volume } }))
    expect(decodeRecords(encode(records).join('\n'), (line) => line.includes('"b"'))).toEqual([records[1]])
  })

  it('PLUS-6 are found in the form without templates, and damaged lines are skipped', () => {
    const change = { atMs: 5, kind: 'PersistentVolume', name: 'v', uid: 'u', verb: 'create', user: 'a', changes: [] }
    const lines = [
      JSON.stringify(change),
      '{"atMs":',
      '["u",7,1,"","v"]',
      JSON.stringify({ process: 'p', activity: call }),
    ]
    expect(decodeRecords(lines.join('\n'))).toEqual([change, { process: 'p', activity: call }])
    expect(lines.map(ownerInLine).slice(0, 1)).toEqual(['u'])
    expect(timeInLine(lines[0]!, lines[0]!)).toBe(5)
  })
})

describe('templates', () => {
  it('PLUS-6 are found by their parts, and built once while they are in use', () => {
    const templates = new Templates()
    let built = 0
    const parts = new TemplateParts()
    const find = (part: string) => {
      parts.count = 0
      for (const added of ['call', part, undefined]) parts.add(added)
      return templates.find(parts, () => String(built++))
    }
    const first = find('a')
    expect(find('a')).toBe(first)
    expect(find('b')).not.toBe(first)
    for (let index = 0; index < 100; index++) find(`other-${index}`)
    expect(find('a')).not.toBe(first) // replaced
    expect(built).toBe(103)
  })
})
