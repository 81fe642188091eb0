import { expect, it } from 'vitest'
import { createStepFollower } from './follow-steps.ts'
import type { ChangeRecord } from './journal-record.ts'

const aRecord = (kind: string, verb: ChangeRecord['verb'], details: Partial<ChangeRecord> = {}): ChangeRecord => ({
  ...{ atMs: 0, kind, verb, user: 'ann', changes: [] },
  ...(kind === 'PersistentVolume'
    ? { name: 'v', uid: 'uid-v', claimUid: 'uid-c', handle: 'disk-1' }
    : { name: 'c', uid: 'uid-c' }),
  ...details,
})
const claimCreated = aRecord('PersistentVolumeClaim', 'create', { step: 'Created' })
const volumeCreated = aRecord('PersistentVolume', 'create', { step: 'Provisioned' })
const deleteCall = { start: '', durationMs: 1, result: 'OK', driver: 'd', method: 'DeleteVolume', volume: 'disk-1' }

it('PLUS-6 the step follower drops a deleted claim when its volume is deleted, and follows driver calls until then', () => {
  const steps = createStepFollower()
  const calls: string[] = []
  steps.subscribe({ onCall: ({ name }, { method }) => void calls.push(`${name} ${method}`) })
  steps.addChanges([claimCreated, volumeCreated, aRecord('PersistentVolumeClaim', 'delete')])
  steps.addActivity(deleteCall)
  expect(calls).toEqual(['c DeleteVolume'])
  expect(steps.claims).toBe(1)
  steps.addChanges([aRecord('PersistentVolume', 'update'), aRecord('PersistentVolume', 'delete')])
  expect(steps.claims).toBe(0)
  steps.addActivity(deleteCall)
  expect(calls).toHaveLength(1)
})

it('PLUS-6 the step follower drops a deleted claim that has no volume or whose volume was deleted first', () => {
  const steps = createStepFollower()
  steps.addChanges([claimCreated, aRecord('PersistentVolumeClaim', 'delete')])
  expect(steps.claims).toBe(0)
  steps.addChanges([claimCreated, volumeCreated, aRecord('PersistentVolume', 'delete')])
  expect(steps.claims).toBe(1)
  steps.addChanges([aRecord('PersistentVolumeClaim', 'delete')])
  expect(steps.claims).toBe(0)
})

it('PLUS-6 the step follower finds the claim of a pod by its name, also after another claim with this name was deleted', () => {
  const steps = createStepFollower()
  const scheduled: string[] = []
  steps.subscribe({ onStep: ({ claim, step }) => void (step === 'Scheduled' && scheduled.push(claim.uid)) })
  const created = (uid: string) => aRecord('PersistentVolumeClaim', 'create', { uid, step: 'Created' })
  const podScheduled = aRecord('Pod', 'update', { name: 'p', uid: 'uid-p', claims: ['c'], step: 'Scheduled' })
  steps.addChanges([created('uid-1'), podScheduled])
  steps.addChanges([aRecord('PersistentVolumeClaim', 'delete', { uid: 'uid-1' }), podScheduled])
  steps.addChanges([created('uid-2'), aRecord('PersistentVolumeClaim', 'delete', { uid: 'uid-2' }), podScheduled])
  steps.addChanges([created('uid-3'), podScheduled])
  expect(scheduled).toEqual(['uid-1', 'uid-3'])
})

it('PLUS-6 the step follower passes steps late to a listener that accepts it, unless another one does not', () => {
  const steps = createStepFollower()
  const late: string[] = []
  steps.subscribe({ acceptsLateSteps: true, onStep: ({ step }) => void late.push(step) })
  steps.addChanges([claimCreated, volumeCreated])
  expect(late).toEqual([])
  steps.flush()
  expect(late).toEqual(['Provisioned'])
  steps.addChanges(Array.from({ length: 500 }, () => aRecord('PersistentVolumeClaim', 'update', { step: 'Bound' })))
  expect(late).toEqual(['Provisioned', 'Bound'])
  const prompt: string[] = []
  steps.subscribe({ onStep: ({ step }) => void prompt.push(step) })
  steps.addChanges([aRecord('PersistentVolumeClaim', 'update', { step: 'Scheduled' })])
  expect(prompt).toEqual(['Scheduled'])
})
