// Compares the clocks of this machine, of the API server (its Date header) and of the holders of leases (their renewals).
import { leaseKind } from '../../../../api/kinds/lease/lease.ts'
import { ApiError } from '../../../../api/status-error.ts'
import { formatNames } from '../../../format-names.ts'
import type { Check, DoctorContext, Finding } from '../check.ts'
import { serverTimeMs, type VersionResponse } from '../probe-server.ts'
import { describeUnreadable } from '../report.ts'

/** A larger difference makes tokens and certificates invalid too early or too late, and expired leases look renewed. */
const SKEW_MS_MAX = 5_000
/** The resolution of the Date header. */
const DATE_RESOLUTION_MS = 1_000

export const clocks: Check = {
  id: 'clocks',
  title: 'Clocks',
  async run(context) {
    const findings = [...compareServer(context.server), ...(await compareHolders(context))]
    return findings.length > 0
      ? findings
      : [
          {
            status: 'ok',
            message: `No clock differs from that of the API server by more than ${SKEW_MS_MAX / 1_000} s.`,
          },
        ]
  },
}

const REMEDY = 'timedatectl status'

function compareServer({ dateMs, sentMs, receivedMs }: VersionResponse): Finding[] {
  if (dateMs === undefined) return [{ status: 'unknown', message: 'Not checked: the API server sends no Date header.' }]
  // The clock of the server is ahead or behind by at least these times.
  const aheadMs = dateMs - receivedMs
  const behindMs = sentMs - (dateMs + DATE_RESOLUTION_MS)
  const skewMs = Math.max(aheadMs, behindMs)
  if (skewMs <= SKEW_MS_MAX) return []
  const direction = aheadMs > behindMs ? 'behind' : 'ahead of'
  return [
    {
      status: 'warning',
      message: `The clock of this machine is ${Math.round(skewMs / 1_000)} s ${direction} that of the API server.`,
      remedy: REMEDY,
    },
  ]
}

/** A renewal in the future shows a clock that is ahead. A late one may have other causes. */
async function compareHolders({ cluster, server, clock }: DoctorContext): Promise<Finding[]> {
  try {
    const holders = new Map<string, number>()
    for (const { spec } of await cluster.list(leaseKind)) {
      const aheadMs = Date.parse(spec?.renewTime ?? '') - serverTimeMs(server, clock) - DATE_RESOLUTION_MS
      if (spec?.holderIdentity && aheadMs > SKEW_MS_MAX) holders.set(spec.holderIdentity, aheadMs)
    }
    if (holders.size === 0) return []
    const skewMs = Math.max(...holders.values())
    const message = `Leases are renewed up to ${Math.round(skewMs / 1_000)} s in the future, so the clocks of their holders are ahead: ${formatNames([...holders.keys()])}.`
    return [{ status: 'warning', message, remedy: `${REMEDY} (on the machines of the holders)` }]
  } catch (error) {
    if (error instanceof ApiError) return [describeUnreadable(error)]
    throw error
  }
}
