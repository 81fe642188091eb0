// Keeps in memory the operations that processes report, in a store that serves lists and watches, and passes on the volume
// usage and the activities of the reports. The operations of a process that reports over the API are removed when it has not
// reported for too long. Operations of other servers are added, unless a process also reports them here.
import { FieldErrors } from '../../api/field-errors.ts'
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { operationKind, SERVER_LABEL } from '../../api/kinds/operation/operation.ts'
import { operationReportKind, REPORTED_OPERATIONS_MAX } from '../../api/kinds/operation/operation-report.ts'
import {
  OPERATION_PHASES,
  type Operation,
  type OperationReference,
  type OperationReportSpec,
  type OperationReportStatus,
} from '../../api/kinds/operation/operation-schema.ts'
import { dns1123LabelProblems } from '../../api/names.ts'
import { badRequest, invalid } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { memoryMedium, openMemoryStore, type Store, type Write } from '../../store/index.ts'
import { objectKey } from '../keys.ts'
import { encodeStored } from '../objects/stored-object.ts'
import { createReportedUsage, type ReportedUsage } from './reported-usage.ts'

/** Longer messages are truncated. */
const MESSAGE_LENGTH_MAX = 2_000
/** Bounds the operations of all processes. Further operations are not listed until others have ended. */
const OPERATIONS_MAX = 50_000
/** Bounds the processes that report. The reports of further processes are rejected. */
const REPORTERS_MAX = 10_000
/** The operations of a process that does not report for this time are removed. Processes report every 30 s. */
export const SILENCE_MS_MAX = 90_000
const HISTORY_MS = 60_000
/** A client that resumes a watch after more changes than this must list again. */
const HISTORY_ENTRIES_MAX = 4_000
/** At 100 claims per second, 16 MB of operations change in a minute, of which only the newest are kept. */
const HISTORY_BYTES_MAX = 2 * 1024 * 1024
const HISTORY = { keepMs: HISTORY_MS, entriesMax: HISTORY_ENTRIES_MAX, bytesMax: HISTORY_BYTES_MAX }

export interface OperationBoard {
  /** The operations, with revisions of their own. */
  readonly store: Store
  /** The usage of volumes that other processes report. */
  readonly usage: Pick<ReportedUsage, 'register'>
  /** Applies changes of this process's operations. */
  applyLocal(changes: OperationChanges): void
  /** Applies the report of another process, which `user` sent. */
  applyReport(user: string, report: OperationReportSpec): OperationReportStatus
  /** Applies changes to the operations that processes report to another server on the same store. */
  applyPeer(address: string, changes: OperationChanges): void
  /** Removes the operations of another server. */
  removePeer(address: string): void
  close(): Promise<void>
}

interface OperationChanges {
  readonly changed: readonly Operation[]
  readonly removed: readonly OperationReference[]
}

interface Reporter {
  /** The keys of its operations in the store. */
  readonly keys: Set<string>
  cancelExpiry: () => void
}

/** The reporter of this process. The names of users are not empty. */
const LOCAL_REPORTER = ''
/** Precedes the address of another server. The names of users do not start with a space. */
const PEER_PREFIX = ' peer '
const isPeer = (id: string): boolean => id.startsWith(PEER_PREFIX)

export interface OperationBoardOptions {
  readonly clock: Clock
  /** Receives the activities of accepted reports. Default: they are ignored. */
  onActivities?(process: string, activities: readonly Activity[]): void
}

export async function openOperationBoard({ clock, onActivities }: OperationBoardOptions): Promise<OperationBoard> {
  const store = await openMemoryStore({ clock, history: HISTORY, medium: memoryMedium(firstRevision(clock)) })
  const reporters = new Map<string, Reporter>()
  const usage = createReportedUsage(clock)
  /** The reporter of each operation: names are unique per process, but another process could claim the same name. */
  const owners = new Map<string, string>()

  /** The operations of other servers, including those that a process also reports here, by their keys. */
  const peerOperations = new Map<string, { readonly id: string; readonly operation: Operation }>()

  function apply(id: string, { changed, removed }: OperationChanges): void {
    const reporter = reporters.get(id) ?? { keys: new Set<string>(), cancelExpiry: () => {} }
    reporters.set(id, reporter)
    const writes = new Map<string, Write>()
    for (const { namespace, name } of removed) {
      const key = objectKey(operationKind, namespace, name)
      if (peerOperations.get(key)?.id === id) peerOperations.delete(key)
      if (reporter.keys.delete(key)) writes.set(key, releaseKey(key))
    }
    for (const operation of changed) {
      const { namespace = '', name = '' } = operation.metadata
      const key = objectKey(operationKind, namespace, name)
      const owner = owners.get(key)
      if (owner === undefined && owners.size >= OPERATIONS_MAX) continue
      if (isPeer(id)) peerOperations.set(key, { id, operation })
      // A process that moves to this server replaces the operations that the other server still lists.
      const mayReplace = owner === undefined || owner === id || (isPeer(owner) && !isPeer(id))
      if (!mayReplace) continue
      if (owner !== undefined) reporters.get(owner)?.keys.delete(key)
      owners.set(key, id)
      reporter.keys.add(key)
      writes.set(key, { put: key, value: encodeStored(operation) })
    }
    if (writes.size > 0) void store.transact(() => [...writes.values()]).catch(() => {}) // fails only after close()
  }

  /**
   * Returns the write for a key whose owner has removed its operation: a put if another server lists the operation too.
   */
  function releaseKey(key: string): Write {
    const other = peerOperations.get(key)
    const reporter = other && reporters.get(other.id)
    if (!other || !reporter) {
      owners.delete(key)
      return { delete: key }
    }
    owners.set(key, other.id)
    reporter.keys.add(key)
    return { put: key, value: encodeStored(other.operation) }
  }

  function removeReporter(id: string): void {
    const reporter = reporters.get(id)
    if (!reporter) return
    reporter.cancelExpiry()
    reporters.delete(id)
    for (const [key, other] of isPeer(id) ? peerOperations : []) if (other.id === id) peerOperations.delete(key)
    const writes = [...reporter.keys].map(releaseKey)
    if (writes.length > 0) void store.transact(() => writes).catch(() => {})
  }

  return {
    store,
    usage,
    applyLocal: (changes) => apply(LOCAL_REPORTER, changes),
    applyReport(user, report) {
      const { process, isComplete = false, operations = [], removed = [], activities = [] } = report
      if (activities.length > REPORTED_OPERATIONS_MAX)
        throw badRequest(`a report has at most ${REPORTED_OPERATIONS_MAX} activities; send the others in another one`)
      if (operations.length + removed.length > REPORTED_OPERATIONS_MAX)
        throw badRequest(
          `a report has at most ${REPORTED_OPERATIONS_MAX} operations and removals; send the others in another one`,
        )
      checkOperations(process, operations)
      if (report.replacesVolumes) usage.apply(user, process, report.volumes ?? [])
      const id = `${user} ${process}`
      if (isComplete) removeReporter(id)
      else if (!reporters.has(id)) return { isKnown: false }
      if (!reporters.has(id) && reporters.size >= REPORTERS_MAX)
        throw badRequest(`${REPORTERS_MAX} other processes already report, the maximum; this report is not listed`)
      apply(id, { changed: operations.map(sanitizeOperation), removed })
      if (activities.length > 0) onActivities?.(process, activities.map(sanitizeActivity))
      const reporter = reporters.get(id)!
      reporter.cancelExpiry()
      reporter.cancelExpiry = clock.after(SILENCE_MS_MAX, () => removeReporter(id))
      return { isKnown: true }
    },
    applyPeer: (address, { changed, removed }) =>
      apply(PEER_PREFIX + address, {
        changed: changed.map((operation) => withServer(sanitizeOperation(operation), address)),
        removed,
      }),
    removePeer: (address) => removeReporter(PEER_PREFIX + address),
    async close() {
      for (const { cancelExpiry } of reporters.values()) cancelExpiry()
      usage.close()
      await store.close()
    },
  }
}

/**
 * Returns the current time, so that the revisions of an earlier start are older and rejected with 410. This assumes that fewer
 * than 1,000 operations change per second, on average.
 */
const firstRevision = (clock: Clock): number => clock.nowMs()

function checkOperations(process: string, operations: readonly Operation[]): void {
  const errors = new FieldErrors()
  if (process === '') errors.required('spec.process', 'the process that reports')
  for (const [index, operation] of operations.entries()) {
    const path = `spec.operations[${index}]`
    const { name = '', namespace = '' } = operation.metadata
    errors.invalidAll(`${path}.metadata.name`, name, operationKind.nameErrors(name))
    errors.invalidAll(`${path}.metadata.namespace`, namespace, dns1123LabelProblems(namespace))
    if (!OPERATION_PHASES.includes(operation.phase))
      errors.notSupported(`${path}.phase`, operation.phase, OPERATION_PHASES)
    if (operation.process !== process)
      errors.invalid(`${path}.process`, operation.process, 'must be the reporting process')
  }
  if (errors.hasErrors) throw invalid(operationReportKind, '', errors.list)
}

/** Returns the activity with a message of bounded length. */
const sanitizeActivity = (activity: Activity): Activity =>
  activity.message === undefined ? activity : { ...activity, message: activity.message.slice(0, MESSAGE_LENGTH_MAX) }

/** Returns the operation with only the metadata that reporters set, and with a bounded message. */
function sanitizeOperation({ metadata, message, ...fields }: Operation): Operation {
  const { name, namespace, uid, creationTimestamp, labels } = metadata
  return {
    metadata: { name, namespace, uid, creationTimestamp, labels },
    ...fields,
    ...(message === undefined ? {} : { message: message.slice(0, MESSAGE_LENGTH_MAX) }),
  }
}

/** Adds the label with the address of the server, in which characters that a label must not have are replaced. */
const withServer = ({ metadata, ...fields }: Operation, address: string): Operation => ({
  ...fields,
  metadata: { ...metadata, labels: { ...metadata.labels, [SERVER_LABEL]: address.replace(/[^\w.]+/g, '-') } },
})
