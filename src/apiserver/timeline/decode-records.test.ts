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

/** Returns the lines of a chunk, which starts at the time if it is given. */
function encode(records: readonly ActivityRecord[], atMs?: number): string[] {
  const encoder = new ChunkEncoder()
  if (atMs !== undefined) encoder.setTime(atMs)
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

  it('PLUS-6 keep their start if it is counted from the time of the chunk, before or after it', () => {
    for (const [name, activity] of Object.entries(ACTIVITIES)) {
      const startMs = Date.parse(activity.start)
      for (const chunkMs of [startMs - 7, startMs, startMs + 1_234]) {
        const record: ActivityRecord = { process: 'stowage@a:1', activity, startMs }
        const lines = encode([record], chunkMs)
        expect(decodeRecords(lines.join('\n')), name).toEqual([{ process: 'stowage@a:1', activity }])
        expect(timeInLine(lines.at(-1)!, lines[0]!), name).toBe(startMs)
        expect(lines.join('\n').includes(activity.start), name).toBe(
          name === 'an attempt with unusual fields' || name === 'an attempt without a number',
        )
      }
    }
  })

  it('PLUS-6 contain each namespace once', () => {
    const inNamespace = (namespace: string) => ({
      process: 'p',
      activity: { ...attempt, object: { ...attempt.object!, namespace } },
    })
    const records = ['shop', 'bank', 'shop', 'b "2"', 'bank'].map(inNamespace)
    const text = encode(records).join('\n')
    expect(decodeRecords(text)).toEqual(records)
    for (const namespace of ['shop', 'bank', 'b \\"2\\"']) expect(text.split(`"${namespace}"`)).toHaveLength(2)
  })

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

describe('the lines of earlier versions', () => {
  const OLD_LINES = [
    '[0,{"kind":"PersistentVolumeClaim","verb":"create","user":"ann","changes":["class fast"],"step":"Created"}]',
    '["u-1",0,1795060985133,"shop","orders"]',
    '[1,{"kind":"PersistentVolume","verb":"create","user":"p","changes":["driver d",["claim"]],"step":"Provisioned"}]',
    '[2,{"kind":"PersistentVolumeClaim","verb":"update","user":"p","changes":[["volume"]],"step":"Bound"}]',
    '["u-1",2,1795060985140,"shop","orders",{"volume":"pvc-u-1","pv":[1,"u-2","disk-1"]}]',
    '[3,{"process":"p","activity":{"component":"binding","operation":"Bind","result":"Done","object":{"kind":"PersistentVolumeClaim"}}}]',
    '["u-1",3,"2026-11-19T20:23:05.141000Z",1.5,"shop","orders",1]',
  ]
  const claim = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders', uid: 'u-1' }
  const OLD_RECORDS = [
    { atMs: 1795060985133, ...claim, verb: 'create', user: 'ann', changes: ['class fast'], step: 'Created' },
    {
      ...{ atMs: 1795060985140, kind: 'PersistentVolume', name: 'pvc-u-1', uid: 'u-2', verb: 'create', user: 'p' },
      ...{ changes: ['driver d', 'claim shop/orders'], claimUid: 'u-1', handle: 'disk-1', step: 'Provisioned' },
    },
    {
      ...{ atMs: 1795060985140, ...claim, verb: 'update', user: 'p', changes: ['volume pvc-u-1'] },
      ...{ volume: 'pvc-u-1', step: 'Bound' },
    },
    {
      process: 'p',
      activity: {
        ...{ start: '2026-11-19T20:23:05.141000Z', durationMs: 1.5, result: 'Done', component: 'binding' },
        ...{ operation: 'Bind', object: claim, attempt: 1 },
      },
    },
  ]

  it('PLUS-6 are decoded, also after those of this version in one segment', () => {
    expect(decodeRecords(OLD_LINES.join('\n'))).toEqual(OLD_RECORDS)
    const record: ActivityRecord = { process: 'p', activity: call, startMs: Date.parse(call.start) }
    const newLines = encode([record], 1_795_000_000_000)
    expect(decodeRecords([...newLines, ...OLD_LINES].join('\n'))).toEqual([
      { process: 'p', activity: call },
      ...OLD_RECORDS,
    ])
  })

  it('PLUS-6 have their absolute time and their owner', () => {
    expect(timeInLine(OLD_LINES[4]!, OLD_LINES[0]!)).toBe(1_795_060_985_140)
    expect(timeInLine(OLD_LINES[6]!, OLD_LINES[0]!)).toBe(Date.parse('2026-11-19T20:23:05.141Z'))
    expect(OLD_LINES.map(ownerInLine).filter(Boolean)).toEqual(['u-1', 'u-1', 'u-1'])
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
