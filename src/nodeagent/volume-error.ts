// The error of a volume that is not mounted yet. A failure is recorded as an event and retried with backoff. A volume that
// waits for another component is retried when that component makes a change; an event is recorded after a timeout.

import type { AwaitedObject } from '../base/operation-details.ts'

export type VolumeErrorReason = 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume'

interface VolumeErrorOptions {
  readonly reason?: VolumeErrorReason
  readonly isWaiting?: boolean
  readonly waitsFor?: AwaitedObject
  readonly cause?: unknown
}

export class VolumeError extends Error {
  override readonly name = 'VolumeError'
  readonly reason: VolumeErrorReason
  /** Whether the volume waits for another component, which is not a failure. */
  readonly isWaiting: boolean
  /** The object that has to change, if it is known. */
  readonly waitsFor: AwaitedObject | undefined

  constructor(message: string, options: VolumeErrorOptions = {}) {
    const { reason = 'FailedMount', isWaiting = false, waitsFor, cause } = options
    super(message, { cause })
    this.reason = reason
    this.isWaiting = isWaiting
    this.waitsFor = waitsFor
  }
}

export const waitingError = (message: string, waitsFor?: AwaitedObject) =>
  new VolumeError(message, { isWaiting: true, ...(waitsFor ? { waitsFor } : {}) })

export const mountError = (message: string) => new VolumeError(message)
