// Namespace, Lease and Event.
import { type Say, same, show } from './findings.ts'
import { isDnsSubdomain, isQualifiedName } from './names.ts'

export function checkNamespace({ metadata, spec = {}, status = {} }: any, say: Say, old?: any): void {
  if (metadata.labels?.['kubernetes.io/metadata.name'] !== metadata.name)
    say('metadata.labels', 'its own name is missing')
  const finalizers: string[] = spec.finalizers ?? []
  for (const name of finalizers) {
    if (!isQualifiedName(name)) say('spec.finalizers', `${show(name)} is no finalizer`)
    else if (!name.includes('/') && !['kubernetes', 'orphan', 'foregroundDeletion'].includes(name)) {
      say('spec.finalizers', `${show(name)} has no domain and no meaning`)
    }
  }
  if (!old && !finalizers.includes('kubernetes')) say('spec.finalizers', 'kubernetes is missing')
  const phase = metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating'
  if (status.phase !== phase) say('status.phase', `${show(status.phase)} should be ${phase}`)
}

export function checkLease({ spec = {} }: any, say: Say): void {
  if (spec.leaseDurationSeconds <= 0) say('spec.leaseDurationSeconds', 'not above zero')
  if (spec.leaseTransitions < 0) say('spec.leaseTransitions', 'negative')
  if (spec.preferredHolder && !spec.strategy) say('spec.preferredHolder', 'means nothing without a strategy')
  const strategy = spec.strategy
  if (
    strategy !== undefined &&
    !(strategy.includes('/') ? isQualifiedName(strategy) : strategy === 'OldestEmulationVersion')
  ) {
    say('spec.strategy', `${show(strategy)} is no strategy`)
  }
}

/** The two API groups show one event in two forms; this uses the core group's. */
export function checkEvent(event: any, say: Say, old?: any): void {
  const modern = event.apiVersion !== 'v1'
  const seen = coreView(event)
  const { namespace } = event.metadata
  const involved = seen.involvedObject.namespace ?? ''
  if (seen.eventTime === undefined) {
    if (involved === '' ? namespace !== 'default' : namespace !== involved)
      say('involvedObject.namespace', 'is another one')
  } else {
    if (involved === '' && !['default', 'kube-system'].includes(namespace)) say('involvedObject.namespace', 'missing')
    if (!isQualifiedName(seen.controller ?? '')) say('reportingController', `${show(seen.controller)} is no name`)
    for (const field of ['reportingInstance', 'action', 'reason'] as const) {
      if (!seen[field] || Buffer.byteLength(seen[field]) > 128) say(field, 'missing or too long')
    }
    if (Buffer.byteLength(seen.message ?? '') > 1024) say('note', 'too long')
  }
  if (!modern) return
  if (!old) {
    if (!isDnsSubdomain(event.metadata.name)) say('metadata.name', `${show(event.metadata.name)} is no name`)
    if (seen.eventTime === undefined) say('eventTime', 'missing')
    if (!['Normal', 'Warning'].includes(seen.type)) say('type', `${show(seen.type)} is no type`)
    if (seen.firstTimestamp || seen.lastTimestamp || seen.count) say('deprecatedCount', 'is not for new events')
    if (event.series && (!(event.series.count >= 2) || !event.series.lastObservedTime)) say('series', 'is no series')
    return
  }
  const { series: _, ...now } = seen
  const { series: __, ...before } = coreView(old)
  if (!same(now, before)) say('', 'only the series of an event may change')
}

function coreView(event: any): any {
  if (event.apiVersion === 'v1') {
    const { reportingComponent: controller, involvedObject = {}, source, ...rest } = event
    return { ...pick(rest), controller, involvedObject, source: source ?? {} }
  }
  return {
    ...pick(event),
    controller: event.reportingController,
    involvedObject: event.regarding ?? {},
    message: event.note,
    source: event.deprecatedSource ?? {},
    firstTimestamp: event.deprecatedFirstTimestamp,
    lastTimestamp: event.deprecatedLastTimestamp,
    count: event.deprecatedCount,
  }
}

const pick = (event: any) => {
  const { eventTime, reportingInstance, action, reason, message, type, related, series } = event
  const { firstTimestamp, lastTimestamp, count } = event
  return {
    eventTime,
    reportingInstance,
    action,
    reason,
    message,
    type,
    related,
    series,
    firstTimestamp,
    lastTimestamp,
    count,
  }
}
