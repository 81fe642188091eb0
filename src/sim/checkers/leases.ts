// Rule `two leaders`: no process takes a lease before its holder has failed to renew it for the lease's duration or has
// released it, measured in true time and not by the clock of any process.
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { collectionPrefix, decodeStored } from '../../apiserver/index.ts'
import type { CheckContext } from './context.ts'

interface Holding {
  readonly holder: string
  readonly renewedMs: number
  readonly leaseMs: number
}

export function checkLeases({ system, view, report }: CheckContext): void {
  const { simulation } = system.cluster
  const prefix = collectionPrefix(leaseKind)
  const holdings = new Map<string, Holding>()

  view.onWrites((writes) => {
    for (const { key, value, revision } of writes) {
      if (!key.startsWith(prefix)) continue
      const lease = value && (decodeStored({ value, modRevision: revision }) as Readonly<Lease>)
      checkLease(key.slice(prefix.length), lease?.spec)
    }
  })

  function checkLease(
    name: string,
    { holderIdentity: holder = '', leaseDurationSeconds = 0 }: Lease['spec'] = {},
  ): void {
    const previousHolding = holdings.get(name)
    if (previousHolding?.holder && holder && holder !== previousHolding.holder) {
      const ageMs = simulation.nowMs - previousHolding.renewedMs
      if (ageMs < previousHolding.leaseMs) {
        const timing = `${(ageMs / 1_000).toFixed(1)} s after ${previousHolding.holder} renewed it for ${previousHolding.leaseMs / 1_000} s`
        report('two leaders', `${holder} takes the lease ${name} ${timing}`)
      }
    }
    holdings.set(name, { holder, renewedMs: simulation.nowMs, leaseMs: leaseDurationSeconds * 1_000 })
  }
}
