// Determines from the gRPC code of a CSI call whether the response is final, by the rules of the controllers.
import {
  CSI_CODES,
  type CsiCode,
  CsiError,
  classifyCreateFailure,
  goNameOf,
  isInfeasibleExpand,
  isInfeasibleModify,
  isUncertain,
} from '../csi/index.ts'

/** The operation that a CSI call belongs to. Staging and publishing on the node count as `attach`. */
export type CsiOperation = 'create' | 'expand' | 'modify' | 'delete' | 'attach'

export type Finality = 'unfinished' | 'final' | 'infeasible'

export const FINALITY_TEXTS: Readonly<Record<Finality, string>> = {
  unfinished: 'not final: the driver may still be working, and the call is repeated',
  final: 'final: nothing was changed, and the call is repeated',
  infeasible: 'final: the same request fails again until it is changed',
}

/** `codeName` is the name of the code in Go, such as `ResourceExhausted`. Returns undefined for OK and unknown names. */
export function finalityOf(codeName: string, operation: CsiOperation): Finality | undefined {
  const code = CSI_CODES.find((candidate) => goNameOf(candidate) === codeName)
  return code === undefined || code === 'OK' ? undefined : finalityOfCode(code, operation)
}

function finalityOfCode(code: Exclude<CsiCode, 'OK'>, operation: CsiOperation): Finality {
  const error = new CsiError(code, '')
  if (operation === 'create') {
    const failure = classifyCreateFailure(error, { hasSelectedNode: true, hasTopology: true })
    return failure === 'reschedule' ? 'final' : failure
  }
  if (operation === 'expand' && isInfeasibleExpand(error)) return 'infeasible'
  if (operation === 'modify' && isInfeasibleModify(error)) return 'infeasible'
  return isUncertain(error) ? 'unfinished' : 'final'
}
