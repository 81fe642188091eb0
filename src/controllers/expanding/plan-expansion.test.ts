import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  cancelledPatch,
  completedOnNodePatch,
  completedPatch,
  failedPatch,
  failureMessage,
  formatTime,
  INSUFFICIENT_STORAGE,
  infeasiblePatch,
  nodeInfeasiblePatch,
  nodePendingPatch,
  nodeStartedPatch,
  restartedPatch,
  type StatusPatch,
  startedPatch,
} from '../../volumes/resize-status.ts'
import { type ExpansionStep, planExpansion, type Situation } from './plan-expansion.ts'

const NOW_MS = Date.UTC(2026, 0, 1, 12)
const SLOW_MS = 300_000

interface Sizes {
  readonly req?: number
  readonly cap?: number
  readonly alloc?: number
  readonly state?: string
  readonly pvcap?: number
  readonly conditions?: readonly { type: string; ageMs?: number; reason?: string; message?: string }[]
  readonly metadata?: object
  readonly before?: string
}

const size = (gi: number) => `${gi}Gi`

function aSituation(sizes: Sizes = {}, more: Partial<Situation> = {}): Situation {
  const { req = 5, cap = 3, alloc, state, pvcap = 3, conditions = [], before } = sizes
  const status = {
    phase: 'Bound',
    capacity: { storage: size(cap) },
    ...(alloc === undefined ? {} : { allocatedResources: { storage: size(alloc) } }),
    ...(state === undefined ? {} : { allocatedResourceStatuses: { storage: state } }),
    conditions: conditions.map(({ ageMs = 0, ...one }) => ({
      status: 'True',
      lastProbeTime: formatTime(NOW_MS - ageMs),
      ...one,
    })),
  }
  const claim = {
    metadata: { namespace: 'default', name: 'data', uid: 'u', ...sizes.metadata },
    spec: { volumeName: 'pv', resources: { requests: { storage: size(req) } } },
    status,
  } as unknown as PersistentVolumeClaim
  const volume = {
    metadata: { name: 'pv', annotations: before === undefined ? {} : { [PRE_RESIZE_CAPACITY]: before } },
    spec: { capacity: { storage: size(pvcap) } },
  } as unknown as PersistentVolume
  return {
    claim,
    volume,
    isRejected: false,
    isHeldByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: NOW_MS,
    slowRetryMs: SLOW_MS,
    ...more,
  }
}

const plan = (sizes: Sizes, more?: Partial<Situation>) => planExpansion(aSituation(sizes, more))
const NOTHING: ExpansionStep = { do: 'nothing' }
const expand = (target: number, attempt: 'first' | 'retry' | 'resume'): ExpansionStep => ({
  do: 'expand',
  target: size(target),
  attempt,
})
const FINAL = { isRejected: true }
const NODE_ONLY = { isNodeOnly: true }

describe('the size to request', () => {
  const rows: [string, Sizes, Partial<Situation>, ExpansionStep][] = [
    ['no expansion was started', { req: 5 }, {}, expand(5, 'first')],
    [
      '(3) a larger size is infeasible',
      { req: 5, alloc: 10, state: 'ControllerResizeInfeasible' },
      {},
      expand(5, 'first'),
    ],
    [
      '(4) the call failed with a final error',
      { req: 5, alloc: 10, state: 'ControllerResizeInProgress' },
      FINAL,
      expand(5, 'first'),
    ],
    [
      '(7) the last call has no final response',
      { req: 5, alloc: 10, state: 'ControllerResizeInProgress' },
      {},
      expand(10, 'resume'),
    ],
    [
      'the request grows while the last call has no final response',
      { req: 20, alloc: 10, state: 'ControllerResizeInProgress' },
      {},
      expand(10, 'resume'),
    ],
    [
      '(8) node-only driver: infeasible on the node',
      { req: 5, alloc: 10, state: 'NodeResizeInfeasible', pvcap: 10 },
      NODE_ONLY,
      expand(5, 'first'),
    ],
    [
      '(34) the device’s size is infeasible on the node',
      { req: 5, alloc: 9, state: 'NodeResizeInfeasible', pvcap: 9 },
      {},
      expand(9, 'resume'),
    ],
    [
      '(9) infeasible on the node',
      { req: 5, alloc: 5, state: 'NodeResizeInfeasible', pvcap: 5 },
      {},
      expand(5, 'resume'),
    ],
    [
      'infeasible on the node, and the request grows',
      { req: 20, alloc: 10, state: 'NodeResizeInfeasible', pvcap: 10 },
      {},
      expand(10, 'resume'),
    ],
    [
      '(10) the node is expanding to a smaller size',
      { req: 10, alloc: 5, state: 'NodeResizeInProgress', pvcap: 5 },
      {},
      NOTHING,
    ],
    [
      '(10) node expansion to a smaller size is pending',
      { req: 10, alloc: 5, state: 'NodeResizePending', pvcap: 5 },
      {},
      NOTHING,
    ],
    [
      'node expansion is pending, but the volume has the old size',
      { req: 10, alloc: 5, state: 'NodeResizePending' },
      {},
      expand(5, 'resume'),
    ],
    ['(11) node expansion is pending', { req: 5, alloc: 5, state: 'NodeResizePending', pvcap: 5 }, {}, NOTHING],
    [
      'the volume is larger than requested, the last call has no final response',
      { req: 4, alloc: 10, state: 'ControllerResizeInProgress', pvcap: 5 },
      {},
      expand(10, 'resume'),
    ],
    [
      'the volume is larger than requested, the rest is infeasible',
      { req: 4, alloc: 10, state: 'ControllerResizeInfeasible', pvcap: 5 },
      {},
      expand(5, 'first'),
    ],
    [
      'the volume is larger than requested, the rest failed with a final error',
      { req: 4, alloc: 10, state: 'ControllerResizeInProgress', pvcap: 5 },
      FINAL,
      expand(5, 'first'),
    ],
    ['(38) the volume is larger than requested', { req: 4, pvcap: 5 }, {}, expand(4, 'first')],
    ['the request lies between allocated and actual size', { req: 4, alloc: 3, pvcap: 5 }, {}, expand(4, 'first')],
    [
      'an older resizer has requested node expansion',
      { req: 5, pvcap: 5, conditions: [{ type: 'FileSystemResizePending' }] },
      {},
      NOTHING,
    ],
    ['an unknown state', { req: 5, alloc: 5, state: 'SomethingElse' }, {}, expand(5, 'resume')],
    ['the claim is being deleted', { req: 5, metadata: { deletionTimestamp: 'now' } }, {}, NOTHING],
  ]
  for (const [situation, sizes, more, expected] of rows) {
    it(`REX-1 ${situation}`, () => expect(plan(sizes, more)).toEqual(expected))
  }
})

describe('a request lowered to the capacity', () => {
  const enough = { req: 3, cap: 3, alloc: 10 }
  const rows: [string, Sizes, Partial<Situation>, ExpansionStep][] = [
    ['no expansion is in progress', { req: 3 }, {}, NOTHING],
    ['the request is below the capacity', { req: 2, alloc: 3 }, {}, NOTHING],
    ['cancels an infeasible expansion', { ...enough, state: 'ControllerResizeInfeasible' }, {}, { do: 'cancel' }],
    [
      'cancels an expansion that failed with a final error',
      { ...enough, state: 'ControllerResizeInProgress' },
      FINAL,
      { do: 'cancel' },
    ],
    [
      'repeats the call while it has no final response',
      { ...enough, state: 'ControllerResizeInProgress' },
      {},
      expand(10, 'resume'),
    ],
    ['lets the node finish', { ...enough, state: 'NodeResizePending', pvcap: 10 }, {}, NOTHING],
    ['keeps an expanded device', { ...enough, state: 'NodeResizeInfeasible', pvcap: 10 }, {}, NOTHING],
    [
      'node-only driver: restores the size that was infeasible on the node',
      { ...enough, state: 'NodeResizeInfeasible', pvcap: 10 },
      NODE_ONLY,
      { do: 'cancel', volumeSize: '3Gi' },
    ],
  ]
  for (const [title, sizes, more, expected] of rows) {
    it(`REX-2 ${title}`, () => expect(plan(sizes, more)).toEqual(expected))
  }
})

describe('waiting', () => {
  const refusedSize = (ageMs: number, more: object = {}): Sizes => ({
    req: 10,
    alloc: 10,
    state: 'ControllerResizeInfeasible',
    conditions: [{ type: 'ControllerResizeError', ageMs, ...more }],
  })

  it('REX-7 retries an infeasible size after slowRetryMs, also in another process', () => {
    expect(plan(refusedSize(1_000))).toMatchObject({ do: 'wait', afterMs: SLOW_MS - 1_000 })
    expect(plan(refusedSize(SLOW_MS))).toEqual(expand(10, 'retry'))
  })

  it('REX-7 waits at most slowRetryMs if clocks differ', () => {
    expect(plan(refusedSize(-3_600_000))).toMatchObject({ do: 'wait', afterMs: SLOW_MS })
  })

  it('REX-7 requests another size at once', () => {
    expect(plan({ ...refusedSize(1_000), req: 5 })).toEqual(expand(5, 'first'))
  })

  it('REX-9 retries a size that was infeasible on the node after slowRetryMs', () => {
    const sizes = { req: 10, alloc: 10, pvcap: 10, state: 'NodeResizeInfeasible' }
    expect(plan({ ...sizes, conditions: [{ type: 'NodeResizeError', ageMs: 1_000 }] })).toMatchObject({ do: 'wait' })
    expect(plan({ ...sizes, conditions: [{ type: 'NodeResizeError', ageMs: SLOW_MS }] })).toEqual(expand(10, 'resume'))
  })

  it('REX-1 holds while the volume is in use', () => {
    expect(plan({ req: 5 }, { isHeldByUse: true })).toEqual({ do: 'hold' })
    expect(
      plan({ req: 3, alloc: 5, state: 'ControllerResizeInProgress' }, { isHeldByUse: true, isRejected: true }),
    ).toEqual({
      do: 'cancel',
    })
  })

  it('PLUS-12 rejects a size beyond the free capacity, unless the driver may be expanding to it', () => {
    const noRoom = { shortageFor: () => '2Gi are missing' }
    const refusal = { do: 'refuse', target: '5Gi', because: '2Gi are missing', reason: INSUFFICIENT_STORAGE }
    expect(plan({ req: 5 }, noRoom)).toEqual(refusal)
    expect(plan({ req: 5, alloc: 5, state: 'ControllerResizeInProgress' }, noRoom)).toEqual(expand(5, 'resume'))
  })

  it('PLUS-12 reports a shortage once, and retries at once when capacity is free', () => {
    const said = {
      type: 'ControllerResizeError',
      reason: INSUFFICIENT_STORAGE,
      message: failureMessage('2Gi are missing'),
    }
    const sizes = { req: 5, alloc: 5, state: 'ControllerResizeInfeasible', conditions: [said] }
    expect(plan(sizes, { shortageFor: () => '2Gi are missing' })).toEqual({ do: 'wait', because: '2Gi are missing' })
    expect(plan(sizes, { shortageFor: () => '1Gi are missing' })).toMatchObject({
      do: 'refuse',
      because: '1Gi are missing',
    })
    expect(plan(sizes)).toEqual(expand(5, 'retry'))
  })

  it('REX-8 rejects a size beyond int64 without retry', () => {
    const situation = aSituation({})
    const claim = { ...situation.claim, spec: { resources: { requests: { storage: '10E' } } } }
    const because = '10E exceeds the largest size in CSI (2^63-1 bytes)'
    expect(planExpansion({ ...situation, claim })).toEqual({ do: 'refuse', target: '10E', because })
    const message = failureMessage(because)
    const status = {
      ...claim.status,
      allocatedResources: { storage: '10E' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' as const },
      conditions: [{ type: 'ControllerResizeError', status: 'True', message }],
    }
    expect(planExpansion({ ...situation, claim: { ...claim, status } })).toEqual({ do: 'wait', because })
  })

  it('REX-1 (16) removes the pre-resize capacity once the node has finished', () => {
    expect(plan({ req: 5, cap: 5, pvcap: 5, before: '3Gi' })).toEqual({ do: 'removeAnnotation' })
    expect(plan({ req: 5, cap: 3, pvcap: 5, alloc: 5, state: 'NodeResizePending', before: '3Gi' })).toEqual(NOTHING)
  })
})

/** A model of driver, node and user around the plan, with every response, crash and edit between two steps. */
class Model {
  situation: Situation
  /** The actual size in the driver. */
  has = 3
  /** The size that the driver rejected with a final error, until the next call. */
  rejected: string | undefined
  nowMs = NOW_MS

  readonly isNodeOnly: boolean

  constructor(isNodeOnly: boolean) {
    this.isNodeOnly = isNodeOnly
    this.situation = aSituation({ req: 3, cap: 3, pvcap: 3 }, { isNodeOnly })
  }

  get cap() {
    return giga(this.situation.claim.status?.capacity?.storage)
  }

  get pvcap() {
    return giga(this.situation.volume.spec?.capacity?.storage)
  }

  ask(req: number) {
    const { claim } = this.situation
    this.situation = {
      ...this.situation,
      claim: { ...claim, spec: { resources: { requests: { storage: size(req) } } } },
    }
  }

  write({ status }: StatusPatch, volumeSize?: string) {
    const { claim, volume } = this.situation
    const before = this.pvcap
    this.situation = {
      ...this.situation,
      claim: { ...claim, status: merged(claim.status, status) },
      ...(volumeSize ? { volume: { ...volume, spec: { ...volume.spec!, capacity: { storage: volumeSize } } } } : {}),
    }
    if (!this.isNodeOnly) expect(this.pvcap).toBeGreaterThanOrEqual(before)
  }

  plan(): ExpansionStep {
    const alloc = this.situation.claim.status?.allocatedResources?.storage
    const isRejected = this.rejected !== undefined && this.rejected === alloc
    return planExpansion({ ...this.situation, isRejected, nowMs: this.nowMs })
  }

  /** Applies one step; the driver responds as given. */
  step(response: Response) {
    const plan = this.plan()
    const now = formatTime(this.nowMs)
    switch (plan.do) {
      case 'wait':
        this.nowMs += plan.afterMs ?? 0
        return
      case 'cancel':
        this.write(cancelledPatch(), plan.volumeSize)
        expect(this.has, 'the driver has no more than the volume’s size').toBeLessThanOrEqual(
          Math.max(this.pvcap, this.cap),
        )
        return
      case 'expand': {
        const target = giga(plan.target)
        expect(target, 'never below the size the driver may have').toBeGreaterThanOrEqual(
          this.isNodeOnly ? this.cap : this.has,
        )
        if (plan.attempt === 'first') this.write(startedPatch(plan.target, now))
        if (plan.attempt === 'retry') this.write(restartedPatch(now))
        if (response === 'crash') return this.restart()
        this.rejected = undefined
        if (this.isNodeOnly) return this.write(nodePendingPatch(now), plan.target)
        const isThere = this.has >= target
        if (response === 'refuse' && !isThere) {
          this.rejected = plan.target
          const isNodes = this.situation.claim.status?.allocatedResourceStatuses?.storage?.startsWith('Node')
          return this.write(isNodes ? failedPatch({ message: '' }, now) : infeasiblePatch({ message: '' }, now))
        }
        if (response === 'fail' && !isThere) {
          this.rejected = plan.target
          return this.write(failedPatch({ message: '' }, now))
        }
        if (response === 'lostBefore') return
        this.has = Math.max(this.has, target)
        if (response === 'lostAfter') return
        if (response === 'crashAfter') return this.restart()
        const reported = size(Math.max(this.has, this.pvcap))
        return this.write(response === 'okHere' ? completedPatch(reported) : nodePendingPatch(now), reported)
      }
      case 'refuse':
      case 'hold':
      case 'removeAnnotation':
      case 'nothing':
    }
  }

  node(answer: 'ok' | 'refuse' | 'start') {
    const { status } = this.situation.claim
    const state = status?.allocatedResourceStatuses?.storage
    if (state !== 'NodeResizePending' && state !== 'NodeResizeInProgress') return
    if (answer === 'start') return this.write(nodeStartedPatch())
    if (answer === 'refuse') return this.write(nodeInfeasiblePatch({ message: '' }, formatTime(this.nowMs)))
    if (this.isNodeOnly) this.has = Math.max(this.has, this.pvcap)
    this.write(completedOnNodePatch(size(this.pvcap)))
  }

  restart() {
    this.rejected = undefined
  }
}

type Response = 'ok' | 'okHere' | 'refuse' | 'fail' | 'lostBefore' | 'lostAfter' | 'crash' | 'crashAfter'

const giga = (text = '0Gi') => Number.parseInt(text, 10)

interface ConditionPatch {
  readonly type: string
  readonly $patch?: 'delete'
}

/** A strategic merge patch, as far as resize-status.ts uses it. */
function merged<T>(before: T, change: object): T {
  const next = { ...before } as Record<string, unknown>
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete next[key]
    else if (key === 'conditions') {
      const patches = value as ConditionPatch[]
      const touched = new Set(patches.map(({ type }) => type))
      const kept = ((next.conditions ?? []) as ConditionPatch[]).filter(({ type }) => !touched.has(type))
      next.conditions = [...kept, ...patches.filter(({ $patch }) => $patch === undefined)]
    } else next[key] = typeof value === 'object' ? merged(next[key] ?? {}, value) : value
  }
  return next as T
}

describe('any sequence of edits, responses and crashes', () => {
  const responses: Response[] = ['ok', 'okHere', 'refuse', 'fail', 'lostBefore', 'lostAfter', 'crash', 'crashAfter']
  const event = fc.oneof(
    fc.record({ is: fc.constant('edit' as const), more: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ is: fc.constant('step' as const), response: fc.constantFrom(...responses) }),
    fc.record({
      is: fc.constant('node' as const),
      answer: fc.constantFrom('ok' as const, 'refuse' as const, 'start' as const),
    }),
    fc.constant({ is: 'restart' as const }),
  )

  it('REX-8 never requests less than the driver may have, never shrinks, and ends', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(event, { maxLength: 40 }), (isNodeOnly, events) => {
        const model = new Model(isNodeOnly)
        for (const one of events) {
          const [cap, has] = [model.cap, model.has]
          if (one.is === 'edit') model.ask(model.cap + one.more)
          else if (one.is === 'step') model.step(one.response)
          else if (one.is === 'node') model.node(one.answer)
          else model.restart()
          expect(model.cap).toBeGreaterThanOrEqual(cap)
          expect(model.has).toBeGreaterThanOrEqual(has)
        }
        for (let turn = 0; turn < 20; turn++) {
          model.step('ok')
          model.node('ok')
        }
        const { status, spec } = model.situation.claim
        expect(model.plan()).toEqual(NOTHING)
        expect(model.cap).toBeGreaterThanOrEqual(giga(spec?.resources?.requests?.storage))
        const isLeft = status?.allocatedResourceStatuses?.storage
        expect(isLeft === undefined || isLeft === 'NodeResizeInfeasible').toBe(true)
      }),
      { numRuns: 3_000 },
    )
  })
})
