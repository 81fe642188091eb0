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
const SLOW_RETRY_MS = 300_000

/**
 * The request, capacity, allocated size and resize state of a claim, and the capacity of its volume (`pvcap`). Sizes are in Gi.
 */
interface Sizes {
  readonly req?: number
  readonly cap?: number
  readonly alloc?: number
  readonly state?: string
  readonly pvcap?: number
  readonly conditions?: readonly { type: string; ageMs?: number; reason?: string; message?: string }[]
  readonly metadata?: object
  readonly preResize?: string
}

const formatGi = (gi: number) => `${gi}Gi`

function aSituation(sizes: Sizes = {}, overrides: Partial<Situation> = {}): Situation {
  const { req = 5, cap = 3, alloc, state, pvcap = 3, conditions = [], preResize } = sizes
  const status = {
    phase: 'Bound',
    capacity: { storage: formatGi(cap) },
    ...(alloc === undefined ? {} : { allocatedResources: { storage: formatGi(alloc) } }),
    ...(state === undefined ? {} : { allocatedResourceStatuses: { storage: state } }),
    conditions: conditions.map(({ ageMs = 0, ...condition }) => ({
      status: 'True',
      lastProbeTime: formatTime(NOW_MS - ageMs),
      ...condition,
    })),
  }
  const claim = {
    metadata: { namespace: 'default', name: 'data', uid: 'u', ...sizes.metadata },
    spec: { volumeName: 'pv', resources: { requests: { storage: formatGi(req) } } },
    status,
  } as unknown as PersistentVolumeClaim
  const volume = {
    metadata: { name: 'pv', annotations: preResize === undefined ? {} : { [PRE_RESIZE_CAPACITY]: preResize } },
    spec: { capacity: { storage: formatGi(pvcap) } },
  } as unknown as PersistentVolume
  return {
    claim,
    volume,
    mayBeLarger: false,
    isBlockedByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: NOW_MS,
    isEdited: false,
    slowRetryMs: SLOW_RETRY_MS,
    ...overrides,
  }
}

const plan = (sizes: Sizes, overrides?: Partial<Situation>) => planExpansion(aSituation(sizes, overrides))
const NOTHING: ExpansionStep = { do: 'nothing' }
const expand = (target: number, attempt: 'first' | 'retry' | 'resume'): ExpansionStep => ({
  do: 'expand',
  target: formatGi(target),
  attempt,
})
const UNANSWERED_CALL = { mayBeLarger: true }
const NODE_ONLY_DRIVER = { isNodeOnly: true }

const describeStep = (step: ExpansionStep): string =>
  step.do === 'expand' ? `plans to expand to ${step.target} (${step.attempt})` : `plans ${step.do}`

describe('planExpansion, if the claim requests more than its capacity', () => {
  const rows: [string, Sizes, Partial<Situation>, ExpansionStep][] = [
    ['no expansion was started', { req: 5 }, {}, expand(5, 'first')],
    ['a larger size is infeasible', { req: 5, alloc: 10, state: 'ControllerResizeInfeasible' }, {}, expand(5, 'first')],
    [
      'the call failed with a final error',
      { req: 5, alloc: 10, state: 'ControllerResizeInProgress' },
      {},
      expand(5, 'first'),
    ],
    [
      'the last call has no final response',
      { req: 10, alloc: 10, state: 'ControllerResizeInProgress' },
      UNANSWERED_CALL,
      expand(10, 'resume'),
    ],
    [
      'the request is lowered while the last call has no final response',
      { req: 5, alloc: 10, state: 'ControllerResizeInProgress' },
      UNANSWERED_CALL,
      expand(5, 'first'),
    ],
    [
      'the request grows while the last call has no final response',
      { req: 20, alloc: 10, state: 'ControllerResizeInProgress' },
      UNANSWERED_CALL,
      expand(20, 'first'),
    ],
    [
      'the size is infeasible on the node of a node-only driver',
      { req: 5, alloc: 10, state: 'NodeResizeInfeasible', pvcap: 10 },
      NODE_ONLY_DRIVER,
      expand(5, 'first'),
    ],
    [
      "the device's size is infeasible on the node",
      { req: 5, alloc: 9, state: 'NodeResizeInfeasible', pvcap: 9 },
      {},
      expand(9, 'resume'),
    ],
    [
      'the size is infeasible on the node',
      { req: 5, alloc: 5, state: 'NodeResizeInfeasible', pvcap: 5 },
      {},
      expand(5, 'resume'),
    ],
    [
      'the size is infeasible on the node and the request grows',
      { req: 20, alloc: 10, state: 'NodeResizeInfeasible', pvcap: 10 },
      {},
      expand(10, 'resume'),
    ],
    [
      'the node is expanding to a smaller size',
      { req: 10, alloc: 5, state: 'NodeResizeInProgress', pvcap: 5 },
      {},
      NOTHING,
    ],
    [
      'node expansion to a smaller size is pending',
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
    ['node expansion is pending', { req: 5, alloc: 5, state: 'NodeResizePending', pvcap: 5 }, {}, NOTHING],
    [
      'the volume is larger than requested and the last call has no final response',
      { req: 4, alloc: 10, state: 'ControllerResizeInProgress', pvcap: 5 },
      UNANSWERED_CALL,
      expand(5, 'first'),
    ],
    [
      'the volume is larger than requested and the allocated size is infeasible',
      { req: 4, alloc: 10, state: 'ControllerResizeInfeasible', pvcap: 5 },
      {},
      expand(5, 'first'),
    ],
    ['the volume is larger than requested', { req: 4, pvcap: 5 }, {}, expand(4, 'first')],
    [
      'the request is between the allocated and the actual size',
      { req: 4, alloc: 3, pvcap: 5 },
      {},
      expand(4, 'first'),
    ],
    [
      'an older resizer has requested node expansion',
      { req: 5, pvcap: 5, conditions: [{ type: 'FileSystemResizePending' }] },
      {},
      NOTHING,
    ],
    ['the state is unknown', { req: 5, alloc: 5, state: 'SomethingElse' }, {}, expand(5, 'resume')],
    ['the claim is being deleted', { req: 5, metadata: { deletionTimestamp: 'now' } }, {}, NOTHING],
  ]
  for (const [situation, sizes, overrides, expected] of rows) {
    it(`REX-1 ${describeStep(expected)} if ${situation}`, () => expect(plan(sizes, overrides)).toEqual(expected))
  }
})

describe('planExpansion, if the claim requests no more than its capacity', () => {
  const LOWERED_REQUEST = { req: 3, cap: 3, alloc: 10 }
  const rows: [string, Sizes, Partial<Situation>, ExpansionStep][] = [
    ['plans nothing if no expansion is in progress', { req: 3 }, {}, NOTHING],
    ['plans nothing if the request is below the capacity', { req: 2, alloc: 3 }, {}, NOTHING],
    [
      'cancels an infeasible expansion',
      { ...LOWERED_REQUEST, state: 'ControllerResizeInfeasible' },
      {},
      { do: 'cancel' },
    ],
    [
      'cancels an expansion that failed with a final error',
      { ...LOWERED_REQUEST, state: 'ControllerResizeInProgress' },
      {},
      { do: 'cancel' },
    ],
    [
      'cancels an expansion whose last call has no final response',
      { ...LOWERED_REQUEST, state: 'ControllerResizeInProgress' },
      UNANSWERED_CALL,
      { do: 'cancel' },
    ],
    [
      'finishes an expansion whose size the volume has already',
      { ...LOWERED_REQUEST, state: 'ControllerResizeInProgress', pvcap: 10 },
      UNANSWERED_CALL,
      expand(10, 'resume'),
    ],
    ['lets the node finish', { ...LOWERED_REQUEST, state: 'NodeResizePending', pvcap: 10 }, {}, NOTHING],
    ['keeps an expanded device', { ...LOWERED_REQUEST, state: 'NodeResizeInfeasible', pvcap: 10 }, {}, NOTHING],
    [
      'restores the volume size if the size was infeasible on the node of a node-only driver',
      { ...LOWERED_REQUEST, state: 'NodeResizeInfeasible', pvcap: 10 },
      NODE_ONLY_DRIVER,
      { do: 'cancel', volumeSize: '3Gi' },
    ],
  ]
  for (const [title, sizes, overrides, expected] of rows) {
    it(`REX-2 ${title}`, () => expect(plan(sizes, overrides)).toEqual(expected))
  }
})

describe('planExpansion, if the driver must not be called yet', () => {
  const anInfeasibleSize = (ageMs: number): Sizes => ({
    req: 10,
    alloc: 10,
    state: 'ControllerResizeInfeasible',
    conditions: [{ type: 'ControllerResizeError', ageMs }],
  })

  it('REX-7 retries an infeasible size after slowRetryMs, even in another process', () => {
    expect(plan(anInfeasibleSize(1_000))).toMatchObject({ do: 'wait', afterMs: SLOW_RETRY_MS - 1_000 })
    expect(plan(anInfeasibleSize(SLOW_RETRY_MS))).toEqual(expand(10, 'retry'))
  })

  it('REX-7 waits at most slowRetryMs if clocks differ', () => {
    expect(plan(anInfeasibleSize(-3_600_000))).toMatchObject({ do: 'wait', afterMs: SLOW_RETRY_MS })
  })

  it('REX-7 requests another size immediately', () => {
    expect(plan({ ...anInfeasibleSize(1_000), req: 5 })).toEqual(expand(5, 'first'))
  })

  it('REX-9 retries an infeasible size immediately after an edit to the claim', () => {
    for (const state of ['NodeResizeInfeasible', 'ControllerResizeInfeasible']) {
      const sizes = { req: 10, alloc: 10, pvcap: 10, state }
      expect(plan(sizes, { isEdited: true })).toMatchObject({ do: 'expand' })
    }
  })

  it('REX-9 retries a size that was infeasible on the node after slowRetryMs', () => {
    const sizes = { req: 10, alloc: 10, pvcap: 10, state: 'NodeResizeInfeasible' }
    expect(plan({ ...sizes, conditions: [{ type: 'NodeResizeError', ageMs: 1_000 }] })).toMatchObject({ do: 'wait' })
    expect(plan({ ...sizes, conditions: [{ type: 'NodeResizeError', ageMs: SLOW_RETRY_MS }] })).toEqual(
      expand(10, 'resume'),
    )
  })

  it('waits while the volume is in use, but still cancels', () => {
    expect(plan({ req: 5 }, { isBlockedByUse: true })).toEqual({ do: 'waitForPods' })
    expect(plan({ req: 3, alloc: 5, state: 'ControllerResizeInProgress' }, { isBlockedByUse: true })).toEqual({
      do: 'cancel',
    })
  })

  it('PLUS-12 rejects a size that exceeds the free capacity, unless the driver may already be expanding to it', () => {
    const shortCapacity = { shortageFor: () => '2Gi short' }
    const rejection = { do: 'reject', target: '5Gi', message: '2Gi short', reason: INSUFFICIENT_STORAGE }
    expect(plan({ req: 5 }, shortCapacity)).toEqual(rejection)
    expect(plan({ req: 5, alloc: 5, state: 'ControllerResizeInProgress' }, shortCapacity)).toEqual(expand(5, 'resume'))
    const loweredRequest = { req: 5, alloc: 10, state: 'ControllerResizeInProgress' }
    expect(plan(loweredRequest, shortCapacity)).toEqual(rejection)
    expect(plan(loweredRequest, { ...shortCapacity, ...UNANSWERED_CALL })).toEqual(expand(5, 'first'))
  })

  it('PLUS-12 reports a shortage once, and retries as soon as capacity is free', () => {
    const reportedShortage = {
      type: 'ControllerResizeError',
      reason: INSUFFICIENT_STORAGE,
      message: failureMessage('2Gi short'),
    }
    const sizes = { req: 5, alloc: 5, state: 'ControllerResizeInfeasible', conditions: [reportedShortage] }
    expect(plan(sizes, { shortageFor: () => '2Gi short' })).toEqual({ do: 'wait', message: '2Gi short' })
    expect(plan(sizes, { shortageFor: () => '1Gi short' })).toMatchObject({
      do: 'reject',
      message: '1Gi short',
    })
    expect(plan(sizes)).toEqual(expand(5, 'retry'))
  })

  it('REX-7 rejects a size that exceeds int64 and does not retry it', () => {
    const situation = aSituation({})
    const claim = { ...situation.claim, spec: { resources: { requests: { storage: '10E' } } } }
    const rejection = '10E exceeds the largest size in CSI (2^63-1 bytes)'
    expect(planExpansion({ ...situation, claim })).toEqual({ do: 'reject', target: '10E', message: rejection })
    const message = failureMessage(rejection)
    const status = {
      ...claim.status,
      allocatedResources: { storage: '10E' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' as const },
      conditions: [{ type: 'ControllerResizeError', status: 'True', message }],
    }
    expect(planExpansion({ ...situation, claim: { ...claim, status } })).toEqual({ do: 'wait', message: rejection })
  })

  it('REX-1 removes the pre-resize capacity after the node has finished', () => {
    expect(plan({ req: 5, cap: 5, pvcap: 5, preResize: '3Gi' })).toEqual({ do: 'removeAnnotation' })
    expect(plan({ req: 5, cap: 3, pvcap: 5, alloc: 5, state: 'NodeResizePending', preResize: '3Gi' })).toEqual(NOTHING)
  })
})

/** A model of driver, node and user that applies the plans. Responses, crashes and edits occur between any two steps. */
class Model {
  situation: Situation
  /** The size of the volume in the driver. */
  actualSize = 3
  /** Whether a call has no final response, or another process may have made calls. */
  isUnanswered = false
  nowMs = NOW_MS

  readonly isNodeOnly: boolean

  constructor(isNodeOnly: boolean) {
    this.isNodeOnly = isNodeOnly
    this.situation = aSituation({ req: 3, cap: 3, pvcap: 3 }, { isNodeOnly })
  }

  get cap() {
    return parseGi(this.situation.claim.status?.capacity?.storage)
  }

  get req() {
    return parseGi(this.situation.claim.spec?.resources?.requests?.storage)
  }

  get state() {
    return this.situation.claim.status?.allocatedResourceStatuses?.storage
  }

  get pvcap() {
    return parseGi(this.situation.volume.spec?.capacity?.storage)
  }

  setRequest(req: number) {
    const { claim } = this.situation
    this.situation = {
      ...this.situation,
      claim: { ...claim, spec: { resources: { requests: { storage: formatGi(req) } } } },
    }
  }

  write({ status }: StatusPatch, volumeSize?: string) {
    const { claim, volume } = this.situation
    const previousSize = this.pvcap
    this.situation = {
      ...this.situation,
      claim: { ...claim, status: applyPatch(claim.status, status) },
      ...(volumeSize ? { volume: { ...volume, spec: { ...volume.spec!, capacity: { storage: volumeSize } } } } : {}),
    }
    if (!this.isNodeOnly) expect(this.pvcap).toBeGreaterThanOrEqual(previousSize)
  }

  plan(): ExpansionStep {
    return planExpansion({ ...this.situation, mayBeLarger: this.isUnanswered, nowMs: this.nowMs })
  }

  /** Applies the planned step with this response of the driver. */
  step(response: DriverResponse) {
    const plannedStep = this.plan()
    const time = formatTime(this.nowMs)
    switch (plannedStep.do) {
      case 'wait':
        this.nowMs += plannedStep.afterMs ?? 0
        return
      case 'cancel':
        // Before the cancellation findLostExpansion requests the recorded size, and the driver returns the actual size.
        if (this.isUnanswered && !this.isNodeOnly) {
          if (response.startsWith('lost') || response.startsWith('crash')) return
          this.isUnanswered = false
          if (this.actualSize > Math.max(this.pvcap, this.cap)) return this.saveExpanded(response)
        }
        this.write(cancelledPatch(), plannedStep.volumeSize)
        expect(this.actualSize, "the driver has no more than the volume's size").toBeLessThanOrEqual(
          Math.max(this.pvcap, this.cap),
        )
        return
      case 'expand': {
        const target = parseGi(plannedStep.target)
        expect(target, 'the target is not below the recorded size').toBeGreaterThanOrEqual(
          this.isNodeOnly ? this.cap : Math.max(this.cap, this.pvcap),
        )
        if (this.state?.startsWith('Controller'))
          expect(target, 'the target is what the claim requests now').toBe(Math.max(this.req, this.pvcap))
        if (plannedStep.attempt === 'first') this.write(startedPatch(plannedStep.target, time))
        if (plannedStep.attempt === 'retry') this.write(restartedPatch(time))
        if (response === 'crash') return this.restart()
        if (this.isNodeOnly) return this.write(nodePendingPatch(time), plannedStep.target)
        const hasTargetSize = this.actualSize >= target
        if (response === 'reject' && !hasTargetSize) {
          const isNodeState = this.state?.startsWith('Node')
          return this.write(isNodeState ? failedPatch({ message: '' }, time) : infeasiblePatch({ message: '' }, time))
        }
        if (response === 'fail' && !hasTargetSize) return this.write(failedPatch({ message: '' }, time))
        if (response.startsWith('lost')) this.isUnanswered = true
        if (response === 'lostBefore') return
        this.actualSize = Math.max(this.actualSize, target)
        if (response === 'lostAfter') return
        if (response === 'crashAfter') return this.restart()
        return this.saveExpanded(response)
      }
      case 'reject':
      case 'waitForPods':
      case 'removeAnnotation':
      case 'nothing':
    }
  }

  saveExpanded(response: DriverResponse) {
    this.isUnanswered = false
    const reportedSize = formatGi(Math.max(this.actualSize, this.pvcap))
    const pendingPatch = nodePendingPatch(formatTime(this.nowMs), reportedSize)
    this.write(response === 'okWithoutNode' ? completedPatch(reportedSize) : pendingPatch, reportedSize)
  }

  stepNode(response: 'ok' | 'reject' | 'start') {
    const { state } = this
    if (state !== 'NodeResizePending' && state !== 'NodeResizeInProgress') return
    if (response === 'start') return this.write(nodeStartedPatch())
    if (response === 'reject') return this.write(nodeInfeasiblePatch({ message: '' }, formatTime(this.nowMs)))
    if (this.isNodeOnly) this.actualSize = Math.max(this.actualSize, this.pvcap)
    this.write(completedOnNodePatch(formatGi(this.pvcap)))
  }

  restart() {
    this.isUnanswered = this.state !== undefined
  }
}

type DriverResponse = 'ok' | 'okWithoutNode' | 'reject' | 'fail' | 'lostBefore' | 'lostAfter' | 'crash' | 'crashAfter'

const parseGi = (text = '0Gi') => Number.parseInt(text, 10)

interface ConditionPatch {
  readonly type: string
  readonly $patch?: 'delete'
}

/** Applies a strategic merge patch. Supports only what resize-status.ts uses. */
function applyPatch<T>(target: T, patch: object): T {
  const mergedObject = { ...target } as Record<string, unknown>
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete mergedObject[key]
    else if (key === 'conditions') {
      const patches = value as ConditionPatch[]
      const patchedTypes = new Set(patches.map(({ type }) => type))
      const otherConditions = ((mergedObject.conditions ?? []) as ConditionPatch[]).filter(
        ({ type }) => !patchedTypes.has(type),
      )
      mergedObject.conditions = [...otherConditions, ...patches.filter(({ $patch }) => $patch === undefined)]
    } else mergedObject[key] = typeof value === 'object' ? applyPatch(mergedObject[key] ?? {}, value) : value
  }
  return mergedObject as T
}

describe('planExpansion after any sequence of edits, responses and crashes', () => {
  const responses: DriverResponse[] = [
    'ok',
    'okWithoutNode',
    'reject',
    'fail',
    'lostBefore',
    'lostAfter',
    'crash',
    'crashAfter',
  ]
  const event = fc.oneof(
    fc.record({ is: fc.constant('edit' as const), increase: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ is: fc.constant('step' as const), response: fc.constantFrom(...responses) }),
    fc.record({
      is: fc.constant('node' as const),
      response: fc.constantFrom('ok' as const, 'reject' as const, 'start' as const),
    }),
    fc.constant({ is: 'restart' as const }),
  )

  it('REX-7 REX-8 requests the size that the claim requests now, never shrinks the volume, and ends with the actual size', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(event, { maxLength: 40 }), (isNodeOnly, events) => {
        const model = new Model(isNodeOnly)
        for (const action of events) {
          const [cap, actualSize] = [model.cap, model.actualSize]
          if (action.is === 'edit') model.setRequest(model.cap + action.increase)
          else if (action.is === 'step') model.step(action.response)
          else if (action.is === 'node') model.stepNode(action.response)
          else model.restart()
          expect(model.cap).toBeGreaterThanOrEqual(cap)
          expect(model.actualSize).toBeGreaterThanOrEqual(actualSize)
        }
        for (let round = 0; round < 20; round++) {
          model.step('ok')
          model.stepNode('ok')
        }
        expect(model.plan()).toEqual(NOTHING)
        expect(model.cap).toBeGreaterThanOrEqual(model.req)
        expect(model.state === undefined || model.state === 'NodeResizeInfeasible').toBe(true)
        if (!isNodeOnly) expect(model.pvcap).toBe(model.actualSize)
      }),
      { numRuns: 3_000 },
    )
  })
})
