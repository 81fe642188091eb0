import { describe, expect, it } from 'vitest'
import { aClaim, RECORD } from './claim.fixture.ts'
import { checkMove, type Operation, planMove } from './plan.ts'

const FORWARD: Operation = { ...RECORD, isUndo: false }
const UNDO: Operation = { ...RECORD, isUndo: true }

describe('planMove', () => {
  it('PLUS-4 moves a claim of the class and records its old class', () => {
    expect(planMove(aClaim({ attributesClassName: 'silver' }), FORWARD)).toEqual({
      do: 'move',
      to: 'gold',
      record: RECORD,
    })
  })

  it('PLUS-4 follows a claim that the operation moved and leaves a claim that another client changed', () => {
    expect(planMove(aClaim({ attributesClassName: 'gold', record: RECORD }), FORWARD)).toEqual({
      do: 'follow',
      to: 'gold',
    })
    expect(planMove(aClaim({ attributesClassName: 'gold' }), FORWARD)).toMatchObject({ do: 'leave' })
    expect(planMove(aClaim({ attributesClassName: 'bronze', record: RECORD }), FORWARD)).toEqual({
      do: 'leave',
      message: 'the class is now bronze; left unchanged',
    })
    expect(planMove(aClaim({ attributesClassName: '', record: RECORD }), FORWARD)).toEqual({
      do: 'leave',
      message: 'the claim no longer has a class; left unchanged',
    })
  })

  it('PLUS-4 moves back exactly the claims of the operation on undo', () => {
    expect(planMove(aClaim({ attributesClassName: 'gold', record: RECORD }), UNDO)).toEqual({
      do: 'move',
      to: 'silver',
      record: { ...RECORD, undo: true },
    })
    expect(planMove(aClaim({ attributesClassName: 'silver', record: { ...RECORD, undo: true } }), UNDO)).toEqual({
      do: 'follow',
      to: 'silver',
    })
    for (const record of [undefined, { ...RECORD, id: 'm-2' }, 'other content']) {
      expect(planMove(aClaim({ attributesClassName: 'gold', ...(record ? { record } : {}) }), UNDO)).toMatchObject({
        do: 'leave',
        message: 'the claim no longer has the record of this operation; left unchanged',
      })
    }
    expect(planMove(aClaim({ attributesClassName: 'bronze', record: RECORD }), UNDO)).toMatchObject({ do: 'leave' })
  })

  it('PLUS-4 rejects a claim that is not bound or is being deleted', () => {
    expect(planMove(aClaim({ attributesClassName: 'silver', phase: 'Pending' }), FORWARD)).toMatchObject({
      do: 'refuse',
      message: expect.stringContaining('the claim is Pending'),
    })
    const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' }
    expect(planMove(aClaim({ attributesClassName: 'silver', metadata }), FORWARD)).toMatchObject({ do: 'refuse' })
  })
})

describe('checkMove', () => {
  const modify = (status: string, target = 'gold') => ({
    modifyVolumeStatus: { status, targetVolumeAttributesClassName: target },
  })
  const error = { conditions: [{ type: 'ModifyVolumeError', status: 'True', message: 'iops too high' }] }
  const current = (name: string) => ({ currentVolumeAttributesClassName: name })
  const statusOf = (status: object, attributesClassName = 'gold', to = 'gold') =>
    checkMove(aClaim({ attributesClassName, status }), to)

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
      'iops too high; the volume is unchanged',
    ],
    [
      'removes the full stop from the message of the driver',
      { ...modify('Infeasible'), conditions: [{ type: 'ModifyVolumeError', message: 'No such tier.' }] },
      'failed',
      'No such tier; the volume is unchanged',
    ],
    [
      'fails without a message of the driver',
      modify('Infeasible'),
      'failed',
      'the driver rejects the class; the volume is unchanged',
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

  it('PLUS-4 fails for a claim that was deleted or changed by another client', () => {
    expect(checkMove(undefined, 'gold')).toEqual({ is: 'failed', message: 'the claim was deleted', isWithdrawn: true })
    expect(statusOf({}, 'bronze')).toMatchObject({
      is: 'failed',
      message: expect.stringContaining('another client changed the class to bronze'),
    })
    expect(statusOf({}, '')).toMatchObject({
      is: 'failed',
      message: 'another client removed the class; left unchanged',
    })
  })
})
