// What a plugin answers about a pod or a node. A rejection carries its reasons as data; the message is what users read in
// events and conditions, and no code compares it.

export interface Reason {
  /** Identifies the cause, together with `subject`. */
  readonly type: string
  /** The object the cause is about, e.g. the resource or the claim. */
  readonly subject?: string
  readonly message: string
}

/** A rejection. Filters return undefined for success. */
export interface Status {
  readonly code: 'Unschedulable'
  readonly reasons: readonly Reason[]
}

export type PreFilterResult<S> =
  /** The plugin has nothing to check for this pod: its other steps are not called. */
  | { readonly code: 'Skip' }
  /** `state` is passed to the later steps of this scheduling attempt. */
  | { readonly code: 'Success'; readonly state: S }
  /** The pod fits on no node until another object changes. Reported once, not per node. */
  | Status

export const SKIP = Object.freeze({ code: 'Skip' })

export const unschedulable = (...reasons: readonly Reason[]): Status => ({ code: 'Unschedulable', reasons })

/** Equal for reasons with the same cause. */
export const reasonKey = ({ type, subject }: Reason): string => (subject === undefined ? type : `${type} ${subject}`)
