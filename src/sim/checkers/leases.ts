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
      check(key.slice(prefix.length), lease?.spec)
    }
  })

  function check(name: string, { holderIdentity: holder = '', leaseDurationSeconds = 0 }: Lease['spec'] = {}): void {
    const previous = holdings.get(name)
    if (previous?.holder && holder && holder !== previous.holder) {
      const sinceMs = simulation.nowMs - previous.renewedMs
      if (sinceMs < previous.leaseMs) {
        const timing = `${(sinceMs / 1_000).toFixed(1)} s after ${previous.holder} renewed it for ${previous.leaseMs / 1_000} s`
        report('two leaders', `${holder} takes the lease ${name} ${timing}`)
      }
    }
    holdings.set(name, { holder, renewedMs: simulation.nowMs, leaseMs: leaseDurationSeconds * 1_000 })
  }
}
