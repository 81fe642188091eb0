// The rows of nodes, CSINodes, drivers, operations, quotas and events.
import type { CSIDriver } from '../../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import type { Event } from '../../../api/kinds/event/event-schema.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import type { Operation } from '../../../api/kinds/operation/operation-schema.ts'
import type { ResourceQuota } from '../../../api/kinds/resource-quota/resource-quota-schema.ts'
import type { ConsoleObject } from '../../protocol.ts'
import { shortRef } from '../logic/kinds.ts'
import { intern, type NamedRow, timeOf } from './row.ts'

const namedRow = ({ metadata }: ConsoleObject): NamedRow => ({
  uid: metadata.uid,
  name: metadata.name,
  createdMs: timeOf(metadata.creationTimestamp as string | undefined),
  deletedMs: timeOf(metadata.deletionTimestamp as string | undefined),
})

interface NodeTaint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

export interface NodeRow extends NamedRow {
  /** The status of the condition Ready. */
  readonly ready: string
  readonly readyReason: string | undefined
  readonly readyMessage: string | undefined
  readonly isUnschedulable: boolean
  /** Other conditions that are true, such as DiskPressure. */
  readonly otherConditions: readonly string[]
  readonly taints: readonly NodeTaint[]
  readonly labels: Readonly<Record<string, string>>
}

export function projectNode(object: ConsoleObject): NodeRow {
  const { metadata, spec, status } = object as unknown as Node
  const conditions = status?.conditions ?? []
  const ready = conditions.find(({ type }) => type === 'Ready')
  return {
    ...namedRow(object),
    ready: ready?.status ?? 'Unknown',
    readyReason: ready?.reason,
    readyMessage: ready?.message,
    isUnschedulable: spec?.unschedulable === true,
    otherConditions: conditions
      .filter(({ type, status }) => type !== 'Ready' && status === 'True')
      .map(({ type }) => type),
    taints: (spec?.taints ?? []).map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect })),
    labels: metadata.labels ?? {},
  }
}

export const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service'

export interface CsiNodeRow extends NamedRow {
  readonly drivers: readonly {
    readonly name: string
    readonly nodeId: string
    /** Absent if the driver has no limit. */
    readonly slots?: number
    readonly topologyKeys: readonly string[]
  }[]
}

export function projectCsiNode(object: ConsoleObject): CsiNodeRow {
  const { spec } = object as unknown as CSINode
  return {
    ...namedRow(object),
    drivers: (spec?.drivers ?? []).map(({ name, nodeID, allocatable, topologyKeys = [] }) => ({
      name,
      nodeId: nodeID,
      ...(allocatable?.count === undefined || allocatable.count === null ? {} : { slots: allocatable.count }),
      topologyKeys,
    })),
  }
}

export interface DriverRow extends NamedRow {
  readonly attachRequired: boolean
  readonly storageCapacity: boolean
  readonly podInfoOnMount: boolean
  readonly requiresRepublish: boolean
  readonly seLinuxMount: boolean
  readonly fsGroupPolicy: string
  readonly lifecycleModes: readonly string[]
}

export function projectDriver(object: ConsoleObject): DriverRow {
  const { spec } = object as unknown as CSIDriver
  return {
    ...namedRow(object),
    attachRequired: spec?.attachRequired !== false,
    storageCapacity: spec?.storageCapacity === true,
    podInfoOnMount: spec?.podInfoOnMount === true,
    requiresRepublish: spec?.requiresRepublish === true,
    seLinuxMount: spec?.seLinuxMount === true,
    fsGroupPolicy: spec?.fsGroupPolicy ?? 'ReadWriteOnceWithFSType',
    lifecycleModes: spec?.volumeLifecycleModes ?? ['Persistent'],
  }
}

export interface OperationRow extends NamedRow {
  /** The object's namespace; empty for an object without one. */
  readonly namespace: string
  readonly objectKind: string
  readonly objectName: string
  readonly component: string
  readonly operation: string
  readonly phase: string
  readonly reason: string
  readonly message: string
  readonly attempts: number
  readonly startedMs: number | undefined
  readonly nextMs: number | undefined
  readonly driver: string | undefined
  /** Method and code of the driver's last failed response, such as `CreateVolume: ResourceExhausted`. */
  readonly lastResponse: string | undefined
  readonly waitsFor: string | undefined
  readonly searchText: string
}

export function projectOperation(object: ConsoleObject): OperationRow {
  const operation = object as unknown as Operation
  const { driverAnswer, waitsFor } = operation
  const row = {
    ...namedRow(object),
    namespace: intern(operation.object.namespace ?? ''),
    objectKind: intern(operation.object.kind ?? ''),
    objectName: operation.object.name ?? '',
    component: intern(operation.component),
    operation: intern(operation.operation),
    phase: intern(operation.phase),
    reason: intern(operation.reason ?? ''),
    message: operation.message ?? '',
    attempts: operation.attempts ?? 0,
    startedMs: timeOf(operation.started),
    nextMs: timeOf(operation.nextAttempt),
    driver: intern(driverAnswer?.driver),
    lastResponse: driverAnswer ? intern(`${driverAnswer.method}: ${driverAnswer.code}`) : undefined,
    waitsFor: waitsFor ? shortRef(waitsFor.kind ?? '', waitsFor.name ?? '') : undefined,
  }
  const searchText = [
    row.namespace,
    row.objectName,
    row.objectKind,
    row.operation,
    row.component,
    row.phase,
    row.reason,
    row.lastResponse,
    row.driver,
    row.message,
  ]
    .join(' ')
    .toLowerCase()
  return { ...row, searchText }
}

export interface QuotaRow extends NamedRow {
  readonly namespace: string
  readonly hard: Readonly<Record<string, string>>
  /** Empty until the quota controller has written the status. */
  readonly used: Readonly<Record<string, string>>
  readonly scopes: readonly string[]
}

export function projectQuota(object: ConsoleObject): QuotaRow {
  const { spec, status } = object as unknown as ResourceQuota
  return {
    ...namedRow(object),
    namespace: object.metadata.namespace ?? '',
    hard: status?.hard ?? spec?.hard ?? {},
    used: status?.used ?? {},
    scopes: spec?.scopes ?? [],
  }
}

export interface EventRow extends NamedRow {
  readonly object: string
  readonly isWarning: boolean
  readonly reason: string
  readonly message: string
  readonly component: string
  readonly count: number
  readonly lastMs: number
}

export function projectEvent(object: ConsoleObject): EventRow {
  const event = object as unknown as Event
  const { involvedObject: involved, series } = event
  const time = series?.lastObservedTime || event.lastTimestamp || event.eventTime || event.metadata.creationTimestamp
  return {
    ...namedRow(object),
    object: shortRef(involved.kind ?? '', involved.name ?? ''),
    isWarning: event.type === 'Warning',
    reason: event.reason ?? '',
    message: event.message ?? '',
    component: event.reportingComponent || event.source?.component || '',
    count: series?.count ?? event.count ?? 1,
    lastMs: timeOf(time) ?? 0,
  }
}
