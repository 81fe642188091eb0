// A fence is a precondition of a write: a process still holds its lease, in the same term as leader. A leader sends the fences of
// its leases in a header with every write, and a Stowage server checks them in the transaction of the write. Other API servers
// ignore the header.

export interface LeaseFence {
  readonly namespace: string
  readonly name: string
  /** spec.holderIdentity of the lease. */
  readonly holder: string
  /** spec.leaseTransitions of the lease. */
  readonly transitions: number
}

export const LEASE_FENCE_HEADER = 'stowage-lease-fence'
/** A request with more fences is rejected. */
const FENCES_MAX = 16

/**
 * Returns the value of the header: fences such as `namespace=kube-system&name=leader&holder=host_1&transitions=3`,
 * separated by commas.
 */
export const formatLeaseFences = (fences: readonly LeaseFence[]): string =>
  fences
    .map(({ namespace, name, holder, transitions }) =>
      new URLSearchParams({ namespace, name, holder, transitions: String(transitions) }).toString(),
    )
    .join(',')

/** Returns undefined if the value is invalid. */
export function parseLeaseFences(header: string): LeaseFence[] | undefined {
  const texts = header.split(',')
  if (texts.length > FENCES_MAX) return undefined
  const fences = texts.map((text) => {
    const fields = new URLSearchParams(text.trim())
    const field = (name: string) => fields.get(name) ?? ''
    const transitions = /^\d{1,10}$/.test(field('transitions')) ? Number(field('transitions')) : Number.NaN
    return { namespace: field('namespace'), name: field('name'), holder: field('holder'), transitions }
  })
  const isValid = ({ namespace, name, holder, transitions }: LeaseFence) =>
    namespace !== '' && name !== '' && holder !== '' && !Number.isNaN(transitions)
  return fences.every(isValid) ? fences : undefined
}
