// The error for a patch that cannot be applied. The API server maps its `failure` to an HTTP status.

export type PatchFailure =
  /** The body is not a valid patch. */
  | 'malformed'
  /** The patch cannot be applied to this document. */
  | 'inapplicable'
  /** The patch needs more work or memory than allowed. */
  | 'too large'

export class PatchError extends Error {
  override readonly name = 'PatchError'
  readonly failure: PatchFailure

  constructor(failure: PatchFailure, message: string) {
    super(message)
    this.failure = failure
  }
}
