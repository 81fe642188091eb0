// Why a volume of a pod is not mounted yet. A failure is recorded as an event and retried with backoff; a wait is woken
// by its cause, with an event only after a timeout.

export type ProblemReason = 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume'

export class VolumeProblem extends Error {
  override readonly name = 'VolumeProblem'
  readonly reason: ProblemReason
  /** No failure: waiting for another component. */
  readonly isWaiting: boolean

  constructor(message: string, { reason = 'FailedMount' as ProblemReason, isWaiting = false } = {}) {
    super(message)
    this.reason = reason
    this.isWaiting = isWaiting
  }
}

export const waitingFor = (message: string) => new VolumeProblem(message, { isWaiting: true })

export const failedMount = (message: string) => new VolumeProblem(message)
