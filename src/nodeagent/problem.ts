// Why a volume of a pod is not there yet. A failure is told as an event at once and tried again later and later; what is
// only being waited for is woken by its cause, and told when it takes too long.

export type ProblemReason = 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume'

export class VolumeProblem extends Error {
  override readonly name = 'VolumeProblem'
  readonly reason: ProblemReason
  /** Nothing went wrong: somebody else has yet to do something. */
  readonly isWaiting: boolean

  constructor(message: string, { reason = 'FailedMount' as ProblemReason, isWaiting = false } = {}) {
    super(message)
    this.reason = reason
    this.isWaiting = isWaiting
  }
}

export const waitingFor = (message: string) => new VolumeProblem(message, { isWaiting: true })

export const failedMount = (message: string) => new VolumeProblem(message)
