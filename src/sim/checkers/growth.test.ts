// Tests the checker of automatic growth with planted violations.
import { describe, expect, it } from 'vitest'
import { createFixture } from './checkers.fixture.ts'
import { checkGrowth, findGrowthProblems } from './growth.ts'

interface ClaimState {
  readonly request: string
  readonly capacity: string
  /** The size in the record of the last growth. */
  readonly grownTo?: string
  readonly policy?: string
  readonly pending?: string
}

const createClaim = ({ request, capacity, grownTo, policy = 'step=1Gi,max=4Gi', pending }: ClaimState) => ({
  metadata: {
    namespace: 'team-a',
    name: 'c0',
    uid: 'uid-c0',
    annotations: {
      'stowage.dev/auto-grow': policy,
      ...(grownTo ? { 'stowage.dev/auto-grown': `2026-01-01T00:00:00Z 1073741824 ${grownTo} 4Gi` } : {}),
    },
  },
  spec: { resources: { requests: { storage: request } } },
  status: {
    phase: 'Bound',
    capacity: { storage: capacity },
    ...(pending ? { allocatedResourceStatuses: { storage: pending } } : {}),
  },
})

function violationsOf(...states: readonly ClaimState[]): readonly string[] {
  const fixture = createFixture()
  checkGrowth(fixture.context)
  for (const state of states) fixture.put(['claim', createClaim(state)])
  return fixture.violations
}

const REJECTED_STATUS = 'ControllerResizeInfeasible'

describe('checkGrowth', () => {
  it('accepts growth up to the maximum, and a rejected growth that is lowered', () => {
    const states: ClaimState[] = [
      { request: '2Gi', capacity: '2Gi' },
      { request: '3Gi', capacity: '2Gi', grownTo: '3Gi' },
      { request: '3Gi', capacity: '3Gi', grownTo: '3Gi' },
      { request: '4Gi', capacity: '3Gi', grownTo: '4Gi' },
      { request: '4Gi', capacity: '3Gi', grownTo: '4Gi', pending: REJECTED_STATUS },
      { request: '3Gi', capacity: '3Gi', grownTo: '4Gi 1' },
    ]
    expect(violationsOf(...states)).toEqual([])
  })

  it('reports growth beyond the maximum, in the request and in the volume', () => {
    const start: ClaimState = { request: '4Gi', capacity: '4Gi' }
    expect(violationsOf(start, { request: '5Gi', capacity: '4Gi', grownTo: '5Gi' })[0]).toContain('beyond its maximum')
    const grown: ClaimState = { request: '4Gi', capacity: '3Gi', grownTo: '4Gi' }
    const rounded: ClaimState = { ...grown, capacity: '5Gi' }
    expect(violationsOf({ request: '3Gi', capacity: '3Gi' }, grown, rounded)[0]).toContain('beyond the maximum')
    const byUser: ClaimState = { request: '6Gi', capacity: '4Gi', grownTo: '4Gi' }
    expect(violationsOf({ ...grown, capacity: '4Gi' }, byUser, { ...byUser, capacity: '6Gi' })).toEqual([])
  })

  it('reports a new target while an expansion is pending', () => {
    const pending: ClaimState = { request: '3Gi', capacity: '2Gi' }
    const next: ClaimState = { request: '4Gi', capacity: '2Gi', grownTo: '4Gi' }
    expect(violationsOf(pending, next)[0]).toContain('was pending')
    const onNode: ClaimState = { request: '3Gi', capacity: '3Gi', pending: 'NodeResizePending' }
    expect(violationsOf(onNode, { request: '4Gi', capacity: '3Gi', grownTo: '4Gi' })[0]).toContain('was pending')
  })

  it('reports a request that is lowered without a rejection, or below the capacity', () => {
    const grown: ClaimState = { request: '4Gi', capacity: '3Gi', grownTo: '4Gi' }
    expect(violationsOf(grown, { request: '3Gi', capacity: '3Gi', grownTo: '3Gi' })[0]).toContain('has not rejected it')
    const rejected: ClaimState = { ...grown, pending: REJECTED_STATUS }
    expect(violationsOf(rejected, { request: '2Gi', capacity: '3Gi', grownTo: '4Gi 1' })[0]).toContain(
      'below its capacity',
    )
  })

  it('reports at rest a rejected growth that was not lowered', () => {
    const problemsOf = (state: ClaimState) => {
      const fixture = createFixture()
      fixture.put(['claim', createClaim(state)])
      return findGrowthProblems(fixture.context.view).map(({ rule }) => rule)
    }
    const rejected: ClaimState = { request: '4Gi', capacity: '3Gi', grownTo: '4Gi', pending: REJECTED_STATUS }
    expect(problemsOf(rejected)).toEqual(['growth'])
    expect(problemsOf({ ...rejected, policy: 'off' })).toEqual([])
    expect(problemsOf({ ...rejected, request: '5Gi' })).toEqual([]) // a user has set it
    expect(problemsOf({ request: '3Gi', capacity: '3Gi', grownTo: '4Gi 1' })).toEqual([])
  })
})
