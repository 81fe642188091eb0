// Checks Namespaces, Leases and Events.
import { format, isEqualJson, type Report } from './findings.ts'
import { isDnsSubdomain, isQualifiedName } from './names.ts'

export function checkNamespace({ metadata, spec = {}, status = {} }: any, report: Report, old?: any): void {
  if (metadata.labels?.['kubernetes.io/metadata.name'] !== metadata.name)
    report('metadata.labels', 'the label kubernetes.io/metadata.name is missing')
  const finalizers: string[] = spec.finalizers ?? []
  for (const name of finalizers) {
    if (!isQualifiedName(name)) report('spec.finalizers', `${format(name)} is not a valid finalizer`)
    else if (!name.includes('/') && !['kubernetes', 'orphan', 'foregroundDeletion'].includes(name)) {
      report('spec.finalizers', `${format(name)} has no domain and is not a standard finalizer`)
    }
  }
  if (!old && !finalizers.includes('kubernetes')) report('spec.finalizers', 'kubernetes is missing')
  const phase = metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating'
  if (status.phase !== phase) report('status.phase', `${format(status.phase)} should be ${phase}`)
}

export function checkLease({ spec = {} }: any, report: Report): void {
  if (spec.leaseDurationSeconds <= 0) report('spec.leaseDurationSeconds', 'not above zero')
  if (spec.leaseTransitions < 0) report('spec.leaseTransitions', 'negative')
  if (spec.preferredHolder && !spec.strategy) report('spec.preferredHolder', 'is not allowed without a strategy')
  const strategy = spec.strategy
  if (
    strategy !== undefined &&
    !(strategy.includes('/') ? isQualifiedName(strategy) : strategy === 'OldestEmulationVersion')
  ) {
    report('spec.strategy', `${format(strategy)} is not a valid strategy`)
  }
}

/** Checks an event of either API group, in the form of the core group. */
export function checkEvent(event: any, report: Report, old?: any): void {
  const isEventsGroup = event.apiVersion !== 'v1'
  const coreEvent = coreView(event)
  const { namespace } = event.metadata
  const involvedNamespace = coreEvent.involvedObject.namespace ?? ''
  if (coreEvent.eventTime === undefined) {
    if (involvedNamespace === '' ? namespace !== 'default' : namespace !== involvedNamespace)
      report('involvedObject.namespace', 'differs from the namespace of the event')
  } else {
    if (involvedNamespace === '' && !['default', 'kube-system'].includes(namespace))
      report('involvedObject.namespace', 'missing')
    if (!isQualifiedName(coreEvent.controller ?? ''))
      report('reportingController', `${format(coreEvent.controller)} is not a valid name`)
    for (const field of ['reportingInstance', 'action', 'reason'] as const) {
      if (!coreEvent[field] || Buffer.byteLength(coreEvent[field]) > 128) report(field, 'missing or too long')
    }
    if (Buffer.byteLength(coreEvent.message ?? '') > 1024) report('note', 'too long')
  }
  if (!isEventsGroup) return
  if (!old) {
    if (!isDnsSubdomain(event.metadata.name))
      report('metadata.name', `${format(event.metadata.name)} is not a valid name`)
    if (coreEvent.eventTime === undefined) report('eventTime', 'missing')
    if (!['Normal', 'Warning'].includes(coreEvent.type)) report('type', `${format(coreEvent.type)} is not a valid type`)
    if (coreEvent.firstTimestamp || coreEvent.lastTimestamp || coreEvent.count)
      report('deprecatedCount', 'is not allowed for new events')
    if (event.series && (!(event.series.count >= 2) || !event.series.lastObservedTime))
      report('series', 'is not a valid series')
    return
  }
  const { series: _, ...newEvent } = coreEvent
  const { series: __, ...oldEvent } = coreView(old)
  if (!isEqualJson(newEvent, oldEvent)) report('', 'only the series of an event may change')
}

function coreView(event: any): any {
  if (event.apiVersion === 'v1') {
    const { reportingComponent: controller, involvedObject = {}, source, ...rest } = event
    return { ...commonFields(rest), controller, involvedObject, source: source ?? {} }
  }
  return {
    ...commonFields(event),
    controller: event.reportingController,
    involvedObject: event.regarding ?? {},
    message: event.note,
    source: event.deprecatedSource ?? {},
    firstTimestamp: event.deprecatedFirstTimestamp,
    lastTimestamp: event.deprecatedLastTimestamp,
    count: event.deprecatedCount,
  }
}

const commonFields = (event: any) => {
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
