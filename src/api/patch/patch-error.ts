// Why a patch cannot be applied. The three kinds of patch (json-patch.ts, merge-patch.ts, strategic-merge.ts) share it.

export type PatchFailure =
  /** It is not a patch at all: the client sent the wrong thing. */
  | 'malformed'
  /** It is a patch, but does not fit this document. */
  | 'inapplicable'
  /** It asks for more work or memory than allowed. */
  | 'too large'

export class PatchError extends Error {
  override readonly name = 'PatchError'
  readonly failure: PatchFailure

  constructor(failure: PatchFailure, message: string) {
    super(message)
    this.failure = failure
  }
}
