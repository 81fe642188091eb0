import { describe, expect, it } from 'vitest'
import {
  CSI_CODES,
  type CsiCode,
  CsiError,
  type CsiFailureCode,
  classifyCreateFailure,
  codeNameOf,
  goNameOf,
  isInfeasibleExpand,
  isInfeasibleModify,
  isUncertain,
} from './errors.ts'

// Columns: CreateVolume, CreateVolume with a selected node and topology, uncertain, infeasible expand, infeasible modify.
const TABLE: Record<CsiFailureCode, [string, string, boolean, boolean, boolean]> = {
  CANCELLED: ['unfinished', 'unfinished', true, false, false],
  UNKNOWN: ['final', 'final', false, false, false],
  INVALID_ARGUMENT: ['infeasible', 'infeasible', false, true, true],
  DEADLINE_EXCEEDED: ['unfinished', 'unfinished', true, false, false],
  NOT_FOUND: ['final', 'final', false, true, false],
  ALREADY_EXISTS: ['final', 'final', false, false, false],
  PERMISSION_DENIED: ['final', 'final', false, false, false],
  RESOURCE_EXHAUSTED: ['final', 'reschedule', true, false, false],
  FAILED_PRECONDITION: ['final', 'final', false, false, false],
  ABORTED: ['unfinished', 'unfinished', true, false, false],
  OUT_OF_RANGE: ['final', 'final', false, true, false],
  UNIMPLEMENTED: ['final', 'final', false, false, false],
  INTERNAL: ['final', 'final', false, false, false],
  UNAVAILABLE: ['unfinished', 'unfinished', true, false, false],
  DATA_LOSS: ['final', 'final', false, false, false],
  UNAUTHENTICATED: ['final', 'final', false, false, false],
}

describe('classification of CSI errors', () => {
  it('covers every code', () => {
    expect(['OK', ...Object.keys(TABLE)]).toEqual([...CSI_CODES])
  })

  for (const [
    code,
    [withoutNode, withNode, isUncertainFailure, isInfeasibleForExpand, isInfeasibleForModify],
  ] of Object.entries(TABLE)) {
    it(`returns ${withoutNode} for ${code} of CreateVolume, and ${withNode} with a selected node and topology`, () => {
      const error = new CsiError(code as CsiFailureCode, 'no')
      const classify = (hasSelectedNode: boolean, hasTopology: boolean) =>
        classifyCreateFailure(error, { hasSelectedNode, hasTopology })
      expect(classify(false, false)).toBe(withoutNode)
      expect(classify(true, false)).toBe(withoutNode)
      expect(classify(false, true)).toBe(withoutNode)
      expect(classify(true, true)).toBe(withNode)
    })

    const otherClasses = [
      ...(isUncertainFailure ? ['uncertain'] : []),
      ...(isInfeasibleForExpand ? ['infeasible for expansion'] : []),
      ...(isInfeasibleForModify ? ['infeasible for modification'] : []),
    ]
    it(`REX-7 VAC-6 classifies ${code} of other calls as ${otherClasses.join(', ') || 'final and not infeasible'}`, () => {
      const error = new CsiError(code as CsiFailureCode, 'no')
      expect(isUncertain(error)).toBe(isUncertainFailure)
      expect(isInfeasibleExpand(error)).toBe(isInfeasibleForExpand)
      expect(isInfeasibleModify(error)).toBe(isInfeasibleForModify)
    })
  }

  it('treats an error without a code as uncertain', () => {
    const error = new Error('the connection broke')
    expect(classifyCreateFailure(error, { hasSelectedNode: true, hasTopology: true })).toBe('unfinished')
    expect(isUncertain(error)).toBe(true)
    expect(isInfeasibleExpand(error)).toBe(false)
    expect(isInfeasibleModify(error)).toBe(false)
  })
})

describe('CsiError', () => {
  it('SYS-6 uses the numbers and names of gRPC', () => {
    expect(new CsiError('RESOURCE_EXHAUSTED', 'full').code).toBe(8)
    expect(codeNameOf(16)).toBe('UNAUTHENTICATED')
    expect(codeNameOf(99)).toBe('UNKNOWN')
  })

  it('SYS-11 uses the names of Go for codes in metrics and events', () => {
    expect(CSI_CODES.map((code: CsiCode) => goNameOf(code)).join(' ')).toBe(
      'OK Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied ResourceExhausted ' +
        'FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss Unauthenticated',
    )
    expect(new CsiError('NOT_FOUND', 'no volume "a"').rpcText).toBe('rpc error: code = NotFound desc = no volume "a"')
  })
})
