import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import { checkGrowth, planGrowth } from './plan.ts'
import { encodeRecord, GROW_RECORD } from './record.ts'

interface ClaimOptions {
  request?: string
  capacity?: string
  phase?: string
  attemptedSize?: string
  state?: string
  conditions?: Record<string, string>
  record?: Parameters<typeof encodeRecord>[0] | string
  isBeingDeleted?: boolean
}

/** The defaults are a bound claim with 10Gi. */
function aClaim({
  request = '10Gi',
  capacity = '10Gi',
  phase = 'Bound',
  ...options
}: ClaimOptions = {}): PersistentVolumeClaim {
  const record = typeof options.record === 'string' ? options.record : options.record && encodeRecord(options.record)
  return {
    metadata: {
      namespace: 'shop',
      name: 'data',
      ...(record ? { annotations: { [GROW_RECORD]: record } } : {}),
      ...(options.isBeingDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { resources: { requests: { storage: request } } },
    status: {
      phase: phase as 'Bound',
      capacity: { storage: capacity },
      ...(options.attemptedSize ? { allocatedResources: { storage: options.attemptedSize } } : {}),
      ...(options.state ? { allocatedResourceStatuses: { storage: options.state as never } } : {}),
      conditions: Object.entries(options.conditions ?? {}).map(([type, message]) => ({
        type,
        status: 'True',
        message,
      })),
    },
  } as PersistentVolumeClaim
}

const growBy = (size: string, ...interruptedRuns: string[]) => ({
  by: size,
  run: 'now',
  resumedRuns: [...interruptedRuns, 'now'],
})

describe('planGrowth with --to', () => {
  it.each<[string, ClaimOptions, object]>([
    ['requests the size', {}, { do: 'grow', from: '10Gi', to: '20Gi' }],
    ['follows a size that is already requested', { request: '20Gi' }, { do: 'follow', to: '20Gi' }],
    ['does nothing if the volume has the size', { request: '20Gi', capacity: '20Gi' }, { do: 'nothing' }],
    ['does nothing if the volume is larger', { request: '30Gi', capacity: '30Gi' }, { do: 'nothing', from: '30Gi' }],
    [
      'follows an expansion that is still in progress on the node',
      { request: '20Gi', capacity: '20Gi', state: 'NodeResizeInProgress' },
      { do: 'follow' },
    ],
    ['does nothing if only the request is smaller', { capacity: '50Gi' }, { do: 'nothing', from: '50Gi' }],
    ['rejects an unbound claim', { phase: 'Pending' }, { do: 'refuse', message: /the claim is Pending/ }],
    ['rejects a claim that is being deleted', { isBeingDeleted: true }, { do: 'refuse', message: /being deleted/ }],
    ['rejects a size below a pending request', { request: '30Gi' }, { do: 'refuse', message: /already requests 30Gi/ }],
  ])('PLUS-13 %s', (_title, options, plan) => {
    const message = (plan as { message?: RegExp }).message
    expect(planGrowth(aClaim(options), { to: '20Gi' })).toMatchObject(
      message ? { ...plan, message: expect.stringMatching(message) } : plan,
    )
  })

  it('PLUS-13 removes the record of an interrupted --by', () => {
    expect(planGrowth(aClaim({ record: { run: 'x', by: '1Gi', to: '11Gi' } }), { to: '20Gi' })).toMatchObject({
      record: null,
    })
    expect(planGrowth(aClaim({ record: '{' }), { to: '20Gi' })).toMatchObject({ record: null })
    expect(planGrowth(aClaim(), { to: '20Gi' })).not.toHaveProperty('record')
  })
})

describe('planGrowth with --by', () => {
  it.each([
    [{}, '5Gi', '15Gi'],
    [{ request: '20Gi', capacity: '10Gi' }, '5Gi', '25Gi'],
    [{ request: '10Gi', capacity: '50Gi' }, '5Gi', '55Gi'],
    [{ request: '10G', capacity: '10G' }, '5G', '15G'],
    [{ request: '1Gi', capacity: '1Gi' }, '512Mi', '1536Mi'],
  ])('PLUS-13 adds to the larger of capacity and request: %j by %s', (options, size, to) => {
    expect(planGrowth(aClaim(options), growBy(size))).toMatchObject({
      do: 'grow',
      to,
      record: { run: 'now', by: size, to },
    })
  })

  it('PLUS-13 resumes an interrupted run with the recorded size', () => {
    const record = { run: 'before', by: '5Gi', to: '15Gi' }
    const plan = (options: ClaimOptions) => planGrowth(aClaim({ ...options, record }), growBy('5Gi', 'before'))
    expect(plan({ request: '15Gi' })).toMatchObject({ do: 'follow', to: '15Gi' })
    expect(plan({ request: '15Gi', capacity: '15Gi' })).toMatchObject({ do: 'nothing' })
    expect(plan({ request: '10Gi' }), 'lowered by the user').toMatchObject({ do: 'grow', to: '15Gi', record })
  })

  it('PLUS-13 does not grow a claim twice in one run, even if its record is closed', () => {
    const record = { run: 'before', by: '5Gi', to: '15Gi', closed: true } as const
    const grownClaim = aClaim({ request: '15Gi', capacity: '15Gi', record })
    expect(planGrowth(grownClaim, growBy('5Gi', 'before'))).toMatchObject({ do: 'nothing' })
    expect(planGrowth(grownClaim, growBy('5Gi'))).toMatchObject({ do: 'grow', to: '20Gi' })
  })

  it('PLUS-13 adds to a size in progress and rejects an infeasible one', () => {
    const sizes = { request: '60Gi', attemptedSize: '60Gi' }
    expect(planGrowth(aClaim({ ...sizes, state: 'ControllerResizeInfeasible' }), growBy('5Gi'))).toMatchObject({
      do: 'refuse',
      message: 'the claim requests 60Gi, which the driver cannot provide; lower the request first',
    })
    expect(planGrowth(aClaim({ ...sizes, state: 'ControllerResizeInProgress' }), growBy('5Gi'))).toMatchObject({
      do: 'grow',
      to: '65Gi',
    })
  })

  it('PLUS-13 rejects another amount after an interrupted run, and an unreadable record', () => {
    const record = { run: 'before', by: '5Gi', to: '15Gi' }
    expect(planGrowth(aClaim({ record }), growBy('6Gi', 'before'))).toMatchObject({
      message: expect.stringContaining('growing the claim by 5Gi, to 15Gi, was interrupted'),
    })
    for (const text of ['', 'x', '{}', 'null', '{"run":"a","by":"b","to":"c"}']) {
      expect(planGrowth(aClaim({ record: text || ' ' }), growBy('6Gi')).do).toBe('refuse')
    }
  })

  it('PLUS-13 never lowers the request of a claim', () => {
    const size = fc.integer({ min: 1, max: 100 }).map((n) => `${n}Gi`)
    const target = fc.oneof(
      size.map((to) => ({ to })),
      size.map((amount) => growBy(amount, 'before')),
    )
    const record = fc.option(
      fc.record({ run: fc.constantFrom('before', 'other'), by: size, to: size }, { requiredKeys: ['run', 'by', 'to'] }),
      { nil: undefined },
    )
    fc.assert(
      fc.property(size, size, record, target, (request, capacity, claimRecord, growTarget) => {
        const plan = planGrowth(
          aClaim({ request, capacity, ...(claimRecord ? { record: claimRecord } : {}) }),
          growTarget,
        )
        if (plan.do === 'grow') expect(compareQuantities(plan.to, request)).toBeGreaterThan(0)
        if (plan.do === 'nothing') expect(compareQuantities(plan.to, capacity)).toBeLessThanOrEqual(0)
      }),
    )
  })
})

describe('checkGrowth', () => {
  const errors = { ControllerResizeError: 'no room', NodeResizeError: 'no tools' }
  it.each<[string, ClaimOptions, object]>([
    ['waits for the controller', {}, { is: 'working', message: 'requested' }],
    [
      'waits for the driver',
      { state: 'ControllerResizeInProgress' },
      { is: 'working', message: 'the driver is expanding the volume' },
    ],
    [
      'shows the error that the controller retries',
      { state: 'ControllerResizeInProgress', conditions: errors },
      { is: 'working', message: 'retrying: no room' },
    ],
    [
      'fails if the driver cannot provide the size',
      { state: 'ControllerResizeInfeasible', attemptedSize: '20Gi', conditions: errors },
      { is: 'failed', message: 'no room' },
    ],
    [
      'ignores the infeasible status of an earlier size',
      { state: 'ControllerResizeInfeasible', attemptedSize: '90Gi', conditions: errors },
      { is: 'working' },
    ],
    [
      'fails if the node cannot provide the size',
      { state: 'NodeResizeInfeasible', attemptedSize: '20Gi', conditions: errors },
      { is: 'failed', message: 'no tools' },
    ],
    ['waits for a node', { state: 'NodeResizePending' }, { is: 'waitingForNode' }],
    [
      'waits for a node if an old resizer set only the condition',
      { conditions: { FileSystemResizePending: 'x' } },
      { is: 'waitingForNode' },
    ],
    [
      'waits while the node expands the file system',
      { state: 'NodeResizeInProgress' },
      { is: 'working', message: 'the node is expanding the file system' },
    ],
    ['is done when the volume has the size', { capacity: '20Gi' }, { is: 'done', message: 'grown to 20Gi' }],
    ['is done when the volume is larger', { capacity: '21Gi' }, { is: 'done', message: 'grown to 21Gi' }],
    [
      'fails if the request was lowered',
      { request: '12Gi' },
      { is: 'failed', message: 'the request was lowered to 12Gi' },
    ],
    [
      'fails if the claim is being deleted',
      { isBeingDeleted: true },
      { is: 'failed', message: 'the claim is being deleted' },
    ],
  ])('PLUS-13 %s', (_title, options, status) => {
    expect(checkGrowth(aClaim({ request: '20Gi', ...options }), '20Gi')).toMatchObject(status)
  })

  it('PLUS-13 fails if the claim was deleted', () => {
    expect(checkGrowth(undefined, '20Gi')).toEqual({
      is: 'failed',
      message: 'the claim was deleted',
      isWithdrawn: true,
    })
  })
})
