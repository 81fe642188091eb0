import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  cancelled,
  completed,
  completedOnNode,
  failed,
  failureText,
  INSUFFICIENT_STORAGE,
  infeasible,
  nodeInfeasible,
  nodePending,
  nodeStarted,
  restarted,
  type StatusPatch,
  started,
  timeText,
} from '../../volumes/resize-status.ts'
import { type ExpansionStep, planExpansion, type Situation } from './plan-expansion.ts'

const NOW_MS = Date.UTC(2026, 0, 1, 12)
const SLOW_MS = 300_000

interface Wish {
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

function aSituation(wish: Wish = {}, more: Partial<Situation> = {}): Situation {
  const { req = 5, cap = 3, alloc, state, pvcap = 3, conditions = [], before } = wish
  const status = {
    phase: 'Bound',
    capacity: { storage: size(cap) },
    ...(alloc === undefined ? {} : { allocatedResources: { storage: size(alloc) } }),
    ...(state === undefined ? {} : { allocatedResourceStatuses: { storage: state } }),
    conditions: conditions.map(({ ageMs = 0, ...one }) => ({
      status: 'True',
      lastProbeTime: timeText(NOW_MS - ageMs),
      ...one,
    })),
  }
  const claim = {
    metadata: { namespace: 'default', name: 'data', uid: 'u', ...wish.metadata },
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
    isFinal: false,
    isHeldByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: NOW_MS,
    slowMs: SLOW_MS,
    ...more,
  }
}

const plan = (wish: Wish, more?: Partial<Situation>) => planExpansion(aSituation(wish, more))
const NOTHING: ExpansionStep = { do: 'nothing' }
const expand = (target: number, begins: 'anew' | 'again' | 'goesOn'): ExpansionStep => ({
  do: 'expand',
  target: size(target),
  begins,
})
const FINAL = { isFinal: true }
const NODE_ONLY = { isNodeOnly: true }

describe('which size is asked for', () => {
  const rows: [string, Wish, Partial<Situation>, ExpansionStep][] = [
    ['nothing was begun', { req: 5 }, {}, expand(5, 'anew')],
    [
      '(3) a larger size was refused',
      { req: 5, alloc: 10, state: 'ControllerResizeInfeasible' },
      {},
      expand(5, 'anew'),
    ],
    ['(4) it failed for good', { req: 5, alloc: 10, state: 'ControllerResizeInProgress' }, FINAL, expand(5, 'anew')],
    ['(7) nobody knows', { req: 5, alloc: 10, state: 'ControllerResizeInProgress' }, {}, expand(10, 'goesOn')],
    [
      'more is asked for, and nobody knows',
      { req: 20, alloc: 10, state: 'ControllerResizeInProgress' },
      {},
      expand(10, 'goesOn'),
    ],
    [
      '(8) the node refused, and grows it all',
      { req: 5, alloc: 10, state: 'NodeResizeInfeasible', pvcap: 10 },
      NODE_ONLY,
      expand(5, 'anew'),
    ],
    [
      '(34) the node refused what the device has',
      { req: 5, alloc: 9, state: 'NodeResizeInfeasible', pvcap: 9 },
      {},
      expand(9, 'goesOn'),
    ],
    ['(9) the node refused', { req: 5, alloc: 5, state: 'NodeResizeInfeasible', pvcap: 5 }, {}, expand(5, 'goesOn')],
    [
      'the node refused, and more is asked for',
      { req: 20, alloc: 10, state: 'NodeResizeInfeasible', pvcap: 10 },
      {},
      expand(10, 'goesOn'),
    ],
    ['(10) the node is at work on less', { req: 10, alloc: 5, state: 'NodeResizeInProgress', pvcap: 5 }, {}, NOTHING],
    ['(10) the node is to work on less', { req: 10, alloc: 5, state: 'NodeResizePending', pvcap: 5 }, {}, NOTHING],
    [
      'the node is to work, and the volume does not say so',
      { req: 10, alloc: 5, state: 'NodeResizePending' },
      {},
      expand(5, 'goesOn'),
    ],
    ['(11) the node is to work', { req: 5, alloc: 5, state: 'NodeResizePending', pvcap: 5 }, {}, NOTHING],
    [
      'the volume says more, and nobody knows',
      { req: 4, alloc: 10, state: 'ControllerResizeInProgress', pvcap: 5 },
      {},
      expand(10, 'goesOn'),
    ],
    [
      'the volume says more, and the rest was refused',
      { req: 4, alloc: 10, state: 'ControllerResizeInfeasible', pvcap: 5 },
      {},
      expand(5, 'anew'),
    ],
    [
      'the volume says more, and the rest failed for good',
      { req: 4, alloc: 10, state: 'ControllerResizeInProgress', pvcap: 5 },
      FINAL,
      expand(5, 'anew'),
    ],
    ['(38) the volume says more', { req: 4, pvcap: 5 }, {}, expand(4, 'anew')],
    ['it is between what was made and what was asked for', { req: 4, alloc: 3, pvcap: 5 }, {}, expand(4, 'anew')],
    [
      'an older resizer waits for the node',
      { req: 5, pvcap: 5, conditions: [{ type: 'FileSystemResizePending' }] },
      {},
      NOTHING,
    ],
    ['a state that is not known', { req: 5, alloc: 5, state: 'SomethingElse' }, {}, expand(5, 'goesOn')],
    ['the claim is going', { req: 5, metadata: { deletionTimestamp: 'now' } }, {}, NOTHING],
  ]
  for (const [situation, wish, more, expected] of rows) {
    it(`REX-1 ${situation}`, () => expect(plan(wish, more)).toEqual(expected))
  }
})

describe('a request that is lowered to what there is', () => {
  const enough = { req: 3, cap: 3, alloc: 10 }
  const rows: [string, Wish, Partial<Situation>, ExpansionStep][] = [
    ['nothing is under way', { req: 3 }, {}, NOTHING],
    ['less than there is', { req: 2, alloc: 3 }, {}, NOTHING],
    ['cancels what was refused', { ...enough, state: 'ControllerResizeInfeasible' }, {}, { do: 'cancel' }],
    ['cancels what failed for good', { ...enough, state: 'ControllerResizeInProgress' }, FINAL, { do: 'cancel' }],
    ['goes on asking while nobody knows', { ...enough, state: 'ControllerResizeInProgress' }, {}, expand(10, 'goesOn')],
    ['lets the node finish', { ...enough, state: 'NodeResizePending', pvcap: 10 }, {}, NOTHING],
    ['leaves a device that has grown as it is', { ...enough, state: 'NodeResizeInfeasible', pvcap: 10 }, {}, NOTHING],
    [
      'takes back what a node refused that grows it all',
      { ...enough, state: 'NodeResizeInfeasible', pvcap: 10 },
      NODE_ONLY,
      { do: 'cancel', volumeSize: '3Gi' },
    ],
  ]
  for (const [title, wish, more, expected] of rows) {
    it(`REX-2 ${title}`, () => expect(plan(wish, more)).toEqual(expected))
  }
})

describe('waiting', () => {
  const refusedSize = (ageMs: number, more: object = {}): Wish => ({
    req: 10,
    alloc: 10,
    state: 'ControllerResizeInfeasible',
    conditions: [{ type: 'ControllerResizeError', ageMs, ...more }],
  })

  it('REX-7 a size that was refused is asked for again after the slow interval, also by another process', () => {
    expect(plan(refusedSize(1_000))).toMatchObject({ do: 'wait', afterMs: SLOW_MS - 1_000 })
    expect(plan(refusedSize(SLOW_MS))).toEqual(expand(10, 'again'))
  })

  it('REX-7 a clock that is ahead makes nobody wait for more than that interval', () => {
    expect(plan(refusedSize(-3_600_000))).toMatchObject({ do: 'wait', afterMs: SLOW_MS })
  })

  it('REX-7 another size is not waited for', () => {
    expect(plan({ ...refusedSize(1_000), req: 5 })).toEqual(expand(5, 'anew'))
  })

  it('REX-9 a size that a node refused is tried there again after the slow interval', () => {
    const wish = { req: 10, alloc: 10, pvcap: 10, state: 'NodeResizeInfeasible' }
    expect(plan({ ...wish, conditions: [{ type: 'NodeResizeError', ageMs: 1_000 }] })).toMatchObject({ do: 'wait' })
    expect(plan({ ...wish, conditions: [{ type: 'NodeResizeError', ageMs: SLOW_MS }] })).toEqual(expand(10, 'goesOn'))
  })

  it('REX-1 a volume that is in use and must not be is waited for', () => {
    expect(plan({ req: 5 }, { isHeldByUse: true })).toEqual({ do: 'hold' })
    expect(
      plan({ req: 3, alloc: 5, state: 'ControllerResizeInProgress' }, { isHeldByUse: true, isFinal: true }),
    ).toEqual({
      do: 'cancel',
    })
  })

  it('PLUS-12 a size for which there is no room is refused, unless the driver may be at work on it', () => {
    const noRoom = { shortageFor: () => '2Gi are missing' }
    const refusal = { do: 'refuse', target: '5Gi', because: '2Gi are missing', reason: INSUFFICIENT_STORAGE }
    expect(plan({ req: 5 }, noRoom)).toEqual(refusal)
    expect(plan({ req: 5, alloc: 5, state: 'ControllerResizeInProgress' }, noRoom)).toEqual(expand(5, 'goesOn'))
  })

  it('PLUS-12 which is said once, and asked for at once when there is room', () => {
    const said = {
      type: 'ControllerResizeError',
      reason: INSUFFICIENT_STORAGE,
      message: failureText('2Gi are missing'),
    }
    const wish = { req: 5, alloc: 5, state: 'ControllerResizeInfeasible', conditions: [said] }
    expect(plan(wish, { shortageFor: () => '2Gi are missing' })).toEqual({ do: 'wait', because: '2Gi are missing' })
    expect(plan(wish, { shortageFor: () => '1Gi are missing' })).toMatchObject({
      do: 'refuse',
      because: '1Gi are missing',
    })
    expect(plan(wish)).toEqual(expand(5, 'again'))
  })

  it('REX-8 a size that the protocol cannot say is refused, and not tried again', () => {
    const situation = aSituation({})
    const claim = { ...situation.claim, spec: { resources: { requests: { storage: '10E' } } } }
    const because = '10E is more than any volume can have'
    expect(planExpansion({ ...situation, claim })).toEqual({ do: 'refuse', target: '10E', because })
    const message = failureText(because)
    const status = {
      ...claim.status,
      allocatedResources: { storage: '10E' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' as const },
      conditions: [{ type: 'ControllerResizeError', status: 'True', message }],
    }
    expect(planExpansion({ ...situation, claim: { ...claim, status } })).toEqual({ do: 'wait', because })
  })

  it('REX-1 (16) the size before is taken off the volume when the node is done', () => {
    expect(plan({ req: 5, cap: 5, pvcap: 5, before: '3Gi' })).toEqual({ do: 'tidy' })
    expect(plan({ req: 5, cap: 3, pvcap: 5, alloc: 5, state: 'NodeResizePending', before: '3Gi' })).toEqual(NOTHING)
  })
})

/** A driver, a node and a user around the plan, with every answer, crash and edit that can come between two steps. */
class Play {
  situation: Situation
  /** What the storage really has. */
  has = 3
  /** The size that was finally refused, as long as nothing was asked since. */
  known: string | undefined
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
    const isFinal = this.known !== undefined && this.known === alloc
    return planExpansion({ ...this.situation, isFinal, nowMs: this.nowMs })
  }

  /** One step, with the driver answering as it is told. */
  step(answer: Answer) {
    const plan = this.plan()
    const now = timeText(this.nowMs)
    switch (plan.do) {
      case 'wait':
        this.nowMs += plan.afterMs ?? 0
        return
      case 'cancel':
        this.write(cancelled(), plan.volumeSize)
        expect(this.has, 'nothing larger than the volume says is left behind').toBeLessThanOrEqual(
          Math.max(this.pvcap, this.cap),
        )
        return
      case 'expand': {
        const target = giga(plan.target)
        expect(target, 'never less than the driver may have').toBeGreaterThanOrEqual(
          this.isNodeOnly ? this.cap : this.has,
        )
        if (plan.begins === 'anew') this.write(started(plan.target, now))
        if (plan.begins === 'again') this.write(restarted(now))
        if (answer === 'crash') return this.restart()
        this.known = undefined
        if (this.isNodeOnly) return this.write(nodePending(now), plan.target)
        const isThere = this.has >= target
        if (answer === 'refuse' && !isThere) {
          this.known = plan.target
          const isNodes = this.situation.claim.status?.allocatedResourceStatuses?.storage?.startsWith('Node')
          return this.write(isNodes ? failed({ message: '' }, now) : infeasible({ message: '' }, now))
        }
        if (answer === 'fail' && !isThere) {
          this.known = plan.target
          return this.write(failed({ message: '' }, now))
        }
        if (answer === 'lostBefore') return
        this.has = Math.max(this.has, target)
        if (answer === 'lostAfter') return
        if (answer === 'crashAfter') return this.restart()
        const told = size(Math.max(this.has, this.pvcap))
        return this.write(answer === 'okHere' ? completed(told) : nodePending(now), told)
      }
      case 'refuse':
      case 'hold':
      case 'tidy':
      case 'nothing':
    }
  }

  node(answer: 'ok' | 'refuse' | 'start') {
    const { status } = this.situation.claim
    const state = status?.allocatedResourceStatuses?.storage
    if (state !== 'NodeResizePending' && state !== 'NodeResizeInProgress') return
    if (answer === 'start') return this.write(nodeStarted())
    if (answer === 'refuse') return this.write(nodeInfeasible({ message: '' }, timeText(this.nowMs)))
    if (this.isNodeOnly) this.has = Math.max(this.has, this.pvcap)
    this.write(completedOnNode(size(this.pvcap)))
  }

  restart() {
    this.known = undefined
  }
}

type Answer = 'ok' | 'okHere' | 'refuse' | 'fail' | 'lostBefore' | 'lostAfter' | 'crash' | 'crashAfter'

const giga = (text = '0Gi') => Number.parseInt(text, 10)

function merged(before: any, change: any): any {
  const next = { ...before }
  for (const [key, value] of Object.entries<any>(change)) {
    if (value === null) delete next[key]
    else if (key === 'conditions') {
      const touched = new Set(value.map(({ type }: any) => type))
      next.conditions = [
        ...(before?.conditions ?? []).filter(({ type }: any) => !touched.has(type)),
        ...value.filter(({ $patch }: any) => $patch === undefined),
      ]
    } else next[key] = typeof value === 'object' ? merged(before?.[key] ?? {}, value) : value
  }
  return next
}

describe('whatever happens', () => {
  const answers: Answer[] = ['ok', 'okHere', 'refuse', 'fail', 'lostBefore', 'lostAfter', 'crash', 'crashAfter']
  const happening = fc.oneof(
    fc.record({ is: fc.constant('edit' as const), more: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ is: fc.constant('step' as const), answer: fc.constantFrom(...answers) }),
    fc.record({
      is: fc.constant('node' as const),
      answer: fc.constantFrom('ok' as const, 'refuse' as const, 'start' as const),
    }),
    fc.constant({ is: 'restart' as const }),
  )

  it('REX-8 no size is asked for below what the driver may have, sizes never fall, and every growth ends', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(happening, { maxLength: 40 }), (isNodeOnly, happenings) => {
        const play = new Play(isNodeOnly)
        for (const one of happenings) {
          const [cap, has] = [play.cap, play.has]
          if (one.is === 'edit') play.ask(play.cap + one.more)
          else if (one.is === 'step') play.step(one.answer)
          else if (one.is === 'node') play.node(one.answer)
          else play.restart()
          expect(play.cap).toBeGreaterThanOrEqual(cap)
          expect(play.has).toBeGreaterThanOrEqual(has)
        }
        for (let turn = 0; turn < 20; turn++) {
          play.step('ok')
          play.node('ok')
        }
        const { status, spec } = play.situation.claim
        expect(play.plan()).toEqual(NOTHING)
        expect(play.cap).toBeGreaterThanOrEqual(giga(spec?.resources?.requests?.storage))
        const isLeft = status?.allocatedResourceStatuses?.storage
        expect(isLeft === undefined || isLeft === 'NodeResizeInfeasible').toBe(true)
      }),
      { numRuns: 3_000 },
    )
  })
})
