// Reads the last failure of an operation on an object: from the operations that Stowage components list, or from the events
// and conditions that any component leaves on the object.
import type { Event } from '../api/kinds/event/event-schema.ts'
import { ageSeconds, type Cluster, timeOfEvent } from './cluster.ts'
import type { Diagnosis, Subject } from './diagnosis.ts'
import { type CsiOperation, FINALITY_TEXTS, finalityOf } from './finality.ts'
import { diagnoseOperation, findOperations, hasFailed, withAttempts } from './operations.ts'

/** The names under which components list the operations that make these CSI calls. */
const OPERATION_NAMES: Readonly<Record<CsiOperation, readonly string[]>> = {
  create: ['Provision'],
  expand: ['ExpandController', 'ExpandNode'],
  modify: ['Modify'],
  delete: ['Delete'],
  attach: ['Attach', 'Detach', 'Publish', 'Unpublish'],
}

/**
 * Returns the failed operation on the object, or else the failure that a condition reports, or else the newest warning about
 * the object with one of the reasons.
 */
export function lastFailure(
  cluster: Cluster,
  subject: Subject,
  operation: CsiOperation,
  { reasons, condition }: { readonly reasons: readonly string[]; readonly condition?: Diagnosis | undefined },
): Diagnosis | undefined {
  const [current] = findOperations(cluster, subject, OPERATION_NAMES[operation])
  if (current && hasFailed(current)) return diagnoseOperation(current, operation, cluster)
  const event = cluster
    .eventsOf(subject)
    .find(({ type, reason }) => type === 'Warning' && reasons.includes(reason ?? ''))
  const failure = condition ?? (event && diagnoseEvent(cluster, event, operation))
  return failure && current ? withAttempts(failure, current, cluster) : failure
}

/** Diagnoses the operation on the object that a component lists, whether it has failed or not. */
export function currentOperation(cluster: Cluster, subject: Subject, operation: CsiOperation): Diagnosis | undefined {
  const [current] = findOperations(cluster, subject, OPERATION_NAMES[operation])
  return current && diagnoseOperation(current, operation, cluster)
}

function diagnoseEvent(cluster: Cluster, event: Readonly<Event>, operation: CsiOperation): Diagnosis {
  const age = ageSeconds(timeOfEvent(event), cluster.snapshot.nowMs)
  const component = event.reportingComponent || event.source?.component || 'the provisioner'
  const attempts = event.series?.count ?? event.count
  return diagnoseFailure(event.message ?? '', operation, {
    subject: { kind: 'Component', name: component },
    numbers: { ...(age === undefined ? {} : { ageSeconds: age }), ...(attempts ? { attempts } : {}) },
  })
}

/** Describes the message of a failure. Its gRPC code determines whether the same request can still succeed. */
export function diagnoseFailure(
  message: string,
  operation: CsiOperation,
  { subject, numbers = {} }: { readonly subject: Subject; readonly numbers?: Record<string, string | number> },
): Diagnosis {
  const code = /\brpc error: code = (\w+)/.exec(message)?.[1]
  const finality = code && finalityOf(code, operation)
  if (!code || !finality) return { subject, state: 'failed', reason: 'LastFailure', message, numbers }
  return {
    subject,
    state: 'failed',
    reason: 'LastAnswer',
    message: `${message}; ${FINALITY_TEXTS[finality]}`,
    numbers: { ...numbers, code, isFinal: String(finality !== 'unfinished') },
  }
}
