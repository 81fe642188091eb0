// The result of a plugin for a pod or a node. A rejection carries its reasons as data; the messages are for users.

export interface Reason {
  /** Identifies the cause, together with `subject`. */
  readonly type: string
  /** The object the cause is about, e.g. the resource or the claim. */
  readonly subject?: string
  readonly message: string
  /** Whether another controller normally removes the cause within moments. It is reported only if it lasts. */
  readonly isTransient?: boolean
}

/** The object and the amounts behind a rejection of a node, for diagnosis. */
export interface RejectionDetail {
  /** In CamelCase; may be more specific than the type of the reason: `MaximumVolumeSizeExceeded` for `NotEnoughSpace`. */
  readonly type: string
  readonly message: string
  /** The claim that the detail is about, as NAMESPACE/NAME. */
  readonly claimKey?: string
  /** Amounts by name. Sizes are quantities: `{ requested: '5Gi', free: '1Gi' }`. */
  readonly numbers?: Readonly<Record<string, string | number>>
}

/** A rejection. Filters return undefined for success. */
export interface Status {
  /** `UnschedulableAndUnresolvable` if the pod does not fit even if all other pods leave the node: preemption cannot help. */
  readonly code: 'Unschedulable' | 'UnschedulableAndUnresolvable'
  readonly reasons: readonly Reason[]
}

export type PreFilterResult<S> =
  /** The plugin does not apply to this pod: its other steps are not called. */
  | { readonly code: 'Skip' }
  /** `state` is passed to the later steps of this scheduling attempt. */
  | { readonly code: 'Success'; readonly state: S }
  /** No node fits until another object changes. The rejection is reported once, not per node. */
  | Status

export const SKIP = Object.freeze({ code: 'Skip' })

export const unschedulable = (...reasons: readonly Reason[]): Status => ({ code: 'Unschedulable', reasons })

export const unresolvable = (...reasons: readonly Reason[]): Status => ({
  code: 'UnschedulableAndUnresolvable',
  reasons,
})

export const isRejection = <S>(result: PreFilterResult<S>): result is Status =>
  result.code !== 'Skip' && result.code !== 'Success'

/** Returns a key that is equal for reasons with the same cause. */
export const reasonKey = ({ type, subject }: Reason): string => (subject === undefined ? type : `${type} ${subject}`)
