// The details of an operation that an outcome or an error has in addition to its message. runtime/operations/ lists them.

/** A CSI driver's last response to an operation. */
export interface DriverAnswer {
  readonly driver: string
  /** The method, such as `CreateVolume`. */
  readonly method: string
  /** The code in the form of gRPC for Go, such as `ResourceExhausted`. */
  readonly code: string
}

/** A call to a CSI driver that concerns one volume. */
export interface VolumeCall extends DriverAnswer {
  /** The name of the volume for CreateVolume, otherwise its ID. */
  readonly volume: string
  readonly durationMs: number
  /** A failed call's message. */
  readonly message?: string
}

/** An object that an operation waits for. */
export interface AwaitedObject {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

export interface OperationDetails {
  /** The operation's name, such as `ExpandNode`. Default: the name that the controller declares. */
  readonly operation?: string
  /** Machine-readable, in CamelCase. */
  readonly reason?: string
  /** Whether the attempt failed although its outcome sets the time of the next one. Implied by `driverAnswer`. */
  readonly isFailure?: boolean
  /** Whether the attempt only waits for another one of this process to end. It is listed, but not recorded as an activity. */
  readonly isBlockedByOwnWork?: boolean
  readonly driverAnswer?: DriverAnswer
  readonly waitsFor?: AwaitedObject
}

export interface HasOperationDetails {
  operationDetails(): OperationDetails
}

/** The number of errors in a chain of causes that are examined. */
const CAUSES_MAX = 5

/** Returns the details of the error, or of the first of its causes that has details. */
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
