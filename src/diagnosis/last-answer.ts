// Reads the last answer of a CSI driver or provisioner from the events and conditions of an object, and whether it is final.
import type { Event } from '../api/kinds/event/event-schema.ts'
import {
  CSI_CODES,
  type CsiCode,
  CsiError,
  classifyCreateFailure,
  goNameOf,
  isInfeasibleExpand,
  isInfeasibleModify,
  isUncertain,
} from '../csi/index.ts'
import { ageSeconds, type Cluster, timeOfEvent } from './cluster.ts'
import type { Diagnosis, Subject } from './diagnosis.ts'

type Operation = 'create' | 'expand' | 'modify' | 'delete' | 'attach'

/** Returns the newest warning about the object with one of the reasons, as the last answer to the operation. */
export function lastFailure(
  cluster: Cluster,
  subject: Subject,
  operation: Operation,
  reasons: readonly string[],
): Diagnosis | undefined {
  const event = cluster
    .eventsOf(subject)
    .find(({ type, reason }) => type === 'Warning' && reasons.includes(reason ?? ''))
  return event && describeAnswer(cluster, event, operation)
}

function describeAnswer(cluster: Cluster, event: Readonly<Event>, operation: Operation): Diagnosis {
  const age = ageSeconds(timeOfEvent(event), cluster.snapshot.nowMs)
  const component = event.reportingComponent || event.source?.component || 'the provisioner'
  const attempts = event.series?.count ?? event.count
  return diagnoseAnswer(event.message ?? '', operation, {
    subject: { kind: 'Component', name: component },
    numbers: { ...(age === undefined ? {} : { ageSeconds: age }), ...(attempts ? { attempts } : {}) },
  })
}

/** Describes the message of a failure. Its gRPC code determines whether the same request can still succeed. */
export function diagnoseAnswer(
  message: string,
  operation: Operation,
  { subject, numbers = {} }: { readonly subject: Subject; readonly numbers?: Record<string, string | number> },
): Diagnosis {
  const codeName = /\brpc error: code = (\w+)/.exec(message)?.[1]
  const code = CSI_CODES.find((name) => goNameOf(name) === codeName)
  if (!code || code === 'OK') return { subject, state: 'failed', reason: 'LastFailure', message, numbers }
  const finality = finalityOf(code, operation)
  return {
    subject,
    state: 'failed',
    reason: 'LastAnswer',
    message: `${message}; ${FINALITY_TEXTS[finality]}`,
    numbers: { ...numbers, code: goNameOf(code), isFinal: String(finality !== 'unfinished') },
  }
}

type Finality = 'unfinished' | 'final' | 'infeasible'

const FINALITY_TEXTS: Readonly<Record<Finality, string>> = {
  unfinished: 'not final: the driver may still be working, and the call is repeated',
  final: 'final: nothing was changed, and the call is repeated',
  infeasible: 'final: the same request fails again until it is changed',
}

function finalityOf(code: CsiCode, operation: Operation): Finality {
  if (code === 'OK') return 'final'
  const error = new CsiError(code, '')
  if (operation === 'create') {
    const failure = classifyCreateFailure(error, { hasSelectedNode: true, hasTopology: true })
    return failure === 'reschedule' ? 'final' : failure
  }
  if (operation === 'expand' && isInfeasibleExpand(error)) return 'infeasible'
  if (operation === 'modify' && isInfeasibleModify(error)) return 'infeasible'
  return isUncertain(error) ? 'unfinished' : 'final'
}
