import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Claim } from '../../bulk/index.ts'
import { checkMove, type Operation, planMove } from './plan.ts'
import { encodeRecord, MIGRATE_RECORD, type MigrateRecord, recordOf } from './record.ts'
import { selectBackward, selectForward } from './select.ts'

interface ClaimOptions {
  name?: string
  className?: string
  record?: MigrateRecord | string
  phase?: 'Bound' | 'Pending'
  status?: object
  metadata?: object
}
const aClaim = ({
  name = 'c',
  className,
  record,
  phase = 'Bound',
  status = {},
  metadata = {},
}: ClaimOptions = {}): Claim => ({
  metadata: {
    namespace: 'shop',
    name,
    uid: name,
    resourceVersion: '1',
    ...(record === undefined
      ? {}
      : { annotations: { [MIGRATE_RECORD]: typeof record === 'string' ? record : encodeRecord(record) } }),
    ...metadata,
  },
  spec: { ...(className === undefined ? {} : { volumeAttributesClassName: className }) },
  status: { phase, ...status },
})
const RECORD: MigrateRecord = { id: 'm-1', from: 'silver', to: 'gold' }
const FORWARD: Operation = { ...RECORD, isUndo: false }
const UNDO: Operation = { ...RECORD, isUndo: true }

describe('planMove', () => {
  it('PLUS-4 moves a claim of the class and records its old class', () => {
    expect(planMove(aClaim({ className: 'silver' }), FORWARD)).toEqual({ do: 'move', to: 'gold', record: RECORD })
  })

  it('PLUS-4 follows a claim that the operation moved and leaves a claim that another client changed', () => {
    expect(planMove(aClaim({ className: 'gold', record: RECORD }), FORWARD)).toEqual({ do: 'follow', to: 'gold' })
    expect(planMove(aClaim({ className: 'gold' }), FORWARD)).toMatchObject({ do: 'leave' })
    expect(planMove(aClaim({ className: 'bronze', record: RECORD }), FORWARD)).toEqual({
      do: 'leave',
      message: 'its class is now bronze; left unchanged',
    })
  })

  it('PLUS-4 moves back exactly the claims of the operation on undo', () => {
    expect(planMove(aClaim({ className: 'gold', record: RECORD }), UNDO)).toEqual({
      do: 'move',
      to: 'silver',
      record: { ...RECORD, undo: true },
    })
    expect(planMove(aClaim({ className: 'silver', record: { ...RECORD, undo: true } }), UNDO)).toEqual({
      do: 'follow',
      to: 'silver',
    })
    for (const record of [undefined, { ...RECORD, id: 'm-2' }, 'other content']) {
      expect(planMove(aClaim({ className: 'gold', ...(record ? { record } : {}) }), UNDO)).toMatchObject({
        do: 'leave',
      })
    }
    expect(planMove(aClaim({ className: 'bronze', record: RECORD }), UNDO)).toMatchObject({ do: 'leave' })
  })

  it('PLUS-4 rejects a claim that is not bound or is being deleted', () => {
    expect(planMove(aClaim({ className: 'silver', phase: 'Pending' }), FORWARD)).toMatchObject({
      do: 'refuse',
      message: expect.stringContaining('it is Pending'),
    })
    const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' }
    expect(planMove(aClaim({ className: 'silver', metadata }), FORWARD)).toMatchObject({ do: 'refuse' })
  })
})

describe('checkMove', () => {
  const modify = (status: string, target = 'gold') => ({
    modifyVolumeStatus: { status, targetVolumeAttributesClassName: target },
  })
  const error = { conditions: [{ type: 'ModifyVolumeError', status: 'True', message: 'iops too high' }] }
  const current = (name: string) => ({ currentVolumeAttributesClassName: name })
  const statusOf = (status: object, className = 'gold', to = 'gold') => checkMove(aClaim({ className, status }), to)

  it.each([
    ['waits for the controller', current('silver'), 'working', 'requested'],
    [
      'ignores the status of an earlier class',
      { ...current('silver'), ...modify('Infeasible', 'bronze') },
      'working',
      'requested',
    ],
    [
      'waits while the modification is pending',
      { ...current('silver'), ...modify('Pending') },
      'working',
      'the modification is pending',
    ],
    [
      'waits for the driver',
      { ...current('silver'), ...modify('InProgress') },
      'working',
      'the driver is modifying the volume',
    ],
    [
      'shows the error that the controller retries',
      { ...modify('InProgress'), ...error },
      'working',
      'retrying: iops too high',
    ],
    [
      'fails if the driver rejects the class',
      { ...modify('Infeasible'), ...error },
      'failed',
      'iops too high; its volume is unchanged',
    ],
    [
      'removes the full stop from the message of the driver',
      { ...modify('Infeasible'), conditions: [{ type: 'ModifyVolumeError', message: 'No such tier.' }] },
      'failed',
      'No such tier; its volume is unchanged',
    ],
    [
      'fails without a message of the driver',
      modify('Infeasible'),
      'failed',
      'the driver rejects the class; its volume is unchanged',
    ],
    [
      'waits until the modification has ended',
      { ...current('gold'), ...modify('InProgress') },
      'working',
      'the driver is modifying the volume',
    ],
    ['is done when the class is in effect', current('gold'), 'done', 'gold is in effect'],
  ])('PLUS-4 %s', (_, status, is, message) => {
    expect(statusOf(status)).toEqual({ is, message })
  })

  it('PLUS-4 is done without a class when no modification is in progress', () => {
    expect(statusOf(modify('InProgress'), '', '')).toMatchObject({ is: 'working' })
    expect(statusOf(modify('Infeasible'), '', '')).toEqual({ is: 'done', message: 'no class is in effect' })
  })

  it('PLUS-4 fails a claim that was deleted or changed by another client', () => {
    expect(checkMove(undefined, 'gold')).toEqual({ is: 'failed', message: 'it was deleted' })
    expect(statusOf({}, 'bronze')).toMatchObject({
      is: 'failed',
      message: expect.stringContaining('another client changed its class to bronze'),
    })
  })
})

describe('selectForward and selectBackward', () => {
  const names = (selection: { claims: readonly Claim[] } | undefined) =>
    selection?.claims.map(({ metadata }) => metadata.name)

  it('PLUS-4 select all claims of the class in natural order', () => {
    const claims = ['db-10', 'db-2'].map((name) => aClaim({ name, className: 'silver' }))
    const selection = selectForward([...claims, aClaim({ name: 'x', className: 'gold' })], { ...RECORD, newId: 'm-9' })
    expect([names(selection), selection.operation.id, selection.isResumed]).toEqual([['db-2', 'db-10'], 'm-9', false])
  })

  it('PLUS-4 resume an interrupted operation with its id, but not a completed one', () => {
    const remaining = aClaim({ name: 'b', className: 'silver' })
    const started = (record: MigrateRecord) => [aClaim({ name: 'a', className: 'gold', record }), remaining]
    const open = selectForward(started(RECORD), { ...RECORD, newId: 'm-9' })
    expect([names(open), open.operation.id, open.isResumed]).toEqual([['a', 'b'], 'm-1', true])
    const closed = selectForward(started({ ...RECORD, closed: true }), { ...RECORD, newId: 'm-9' })
    expect([names(closed), closed.operation.id, closed.isResumed]).toEqual([['b'], 'm-9', false])
  })

  it('PLUS-4 treat an absent class and an empty class the same', () => {
    const claims = [aClaim({ name: 'a' }), aClaim({ name: 'b', className: '' }), aClaim({ name: 'c', className: 'x' })]
    expect(names(selectForward(claims, { from: '', to: 'gold', newId: 'm-9' }))).toEqual(['a', 'b'])
  })

  it('PLUS-4 select claims with the record for undo, and list the operations if several match', () => {
    const claims = [
      aClaim({ name: 'a', className: 'gold', record: { ...RECORD, closed: true } }),
      aClaim({ name: 'b', className: 'gold' }),
      aClaim({ name: 'c', className: 'gold', record: { ...RECORD, id: 'm-2', from: 'bronze' } }),
    ]
    expect(names(selectBackward(claims, { id: 'm-1' }))).toEqual(['a'])
    expect(names(selectBackward(claims, { from: 'bronze' }))).toEqual(['c'])
    expect(selectBackward(claims, { id: 'm-3' })).toBeUndefined()
    expect(() => selectBackward(claims, {})).toThrow(
      /choose one:\n {2}--operation m-1 {3}1 claim from silver to gold\n {2}--operation m-2 {3}1 claim from bronze to gold/,
    )
  })
})

describe('recordOf', () => {
  it('PLUS-4 decodes every encoded record and ignores other content', () => {
    const text = fc.string()
    const record = fc
      .record({ id: text, from: text, to: text })
      .chain((value) => fc.constantFrom<MigrateRecord>(value, { ...value, undo: true }, { ...value, closed: true }))
    fc.assert(fc.property(record, (value) => void expect(recordOf(aClaim({ record: value }))).toEqual(value)))
    fc.assert(fc.property(fc.oneof(text, fc.json()), (content) => void recordOf(aClaim({ record: content }))))
    for (const content of ['', 'x', 'null', '[]', '{"id":1,"from":"a","to":"b"}']) {
      expect(recordOf(aClaim({ record: content }))).toBeUndefined()
    }
  })

  it('PLUS-4 returns every claim to its class without a record after any interruptions of migrate and undo', () => {
    const CLASSES = ['silver', 'gold', 'bronze']
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...CLASSES), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(6), { maxLength: 5 }),
        (start, interruptions) => {
          let claims = start.map((className, index) => aClaim({ name: `c-${index}`, className }))
          /** Moves the first `count` claims and is then interrupted. */
          const run = (operation: Operation, set: readonly Claim[], count: number) => {
            for (const claim of set.slice(0, count)) {
              const plan = planMove(claim, operation)
              if (plan.do !== 'move') continue
              const { name } = claim.metadata
              const moved = aClaim({ name, className: plan.to, record: plan.record })
              claims = claims.map((existing) => (existing.metadata.name === name ? moved : existing))
            }
          }
          for (const [round, count] of [...interruptions, 6].entries()) {
            const selection = selectForward(claims, { from: 'silver', to: 'gold', newId: `m-${round}` })
            run(selection.operation, selection.claims, count)
          }
          const ids = new Set(claims.flatMap((claim) => recordOf(claim)?.id ?? []))
          expect(ids.size).toBe(start.includes('silver') ? 1 : 0)
          expect(claims.map(({ spec }) => spec?.volumeAttributesClassName)).toEqual(
            start.map((className) => (className === 'silver' ? 'gold' : className)),
          )
          for (const count of [...interruptions, 6]) {
            const selection = selectBackward(claims, {})
            if (selection) run(selection.operation, selection.claims, count)
          }
          expect(claims.map(({ spec }) => spec?.volumeAttributesClassName)).toEqual(start)
        },
      ),
    )
  })
})
