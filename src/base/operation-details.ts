// What an outcome or an error says about an operation beyond its message. runtime/operations/ lists it.

/** The last answer of a CSI driver to an operation. */
export interface DriverAnswer {
  readonly driver: string
  /** The method, such as `CreateVolume`. */
  readonly method: string
  /** The code in the form of gRPC for Go, such as `ResourceExhausted`. */
  readonly code: string
}

/** An object that an operation waits for. */
export interface AwaitedObject {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

export interface OperationDetails {
  /** The operation, if it is not the one that the controller usually does, such as `ExpandNode`. */
  readonly operation?: string
  /** Machine-readable, in CamelCase. */
  readonly reason?: string
  /** Whether the attempt failed, although the time of the next one is given. A failed driver call implies it. */
  readonly isFailure?: boolean
  readonly driverAnswer?: DriverAnswer
  readonly waitsFor?: AwaitedObject
}

export interface HasOperationDetails {
  operationDetails(): OperationDetails
}

/** Bounds the causes that are followed. */
const CAUSES_MAX = 5

/** Returns the details of an error or of the first of its causes that has some. */
export function operationDetailsOf(error: unknown): OperationDetails | undefined {
  let cause = error
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    if (hasOperationDetails(cause)) return cause.operationDetails()
    cause = cause.cause
  }
  return undefined
}

const hasOperationDetails = (error: Error): error is Error & HasOperationDetails =>
  'operationDetails' in error && typeof error.operationDetails === 'function'
