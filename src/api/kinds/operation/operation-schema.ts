// The schemas of Operation and OperationReport. operation.ts and operation-report.ts declare the kinds. The names of the
// fields, such as `started`, are a contract: clients and remote processes of other versions send and read them.
import { boolean, type Infer, int32, list, object, oneOf, opt, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'
import { activity } from './activity-schema.ts'
import { volumeUsage } from './volume-usage-schema.ts'

export const OPERATION_PHASES = ['Running', 'Retrying', 'Waiting'] as const
export type OperationPhase = (typeof OPERATION_PHASES)[number]

const driverAnswer = object('dev.stowage.v1.DriverAnswer', 'An error response of a CSI driver to a call.', {
  driver: opt(1, string, 'Name of the CSI driver.'),
  method: req(2, string, 'CSI method, such as CreateVolume.'),
  code: req(3, string, 'gRPC code of the response, such as ResourceExhausted.'),
})

export const operation = object(
  'dev.stowage.v1.Operation',
  'Work on an object that a component does now or waits to do. Read-only; removed when the work is done.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; the namespace is that of the object, or default.'),
    object: req(2, objectReference, 'The object that the operation works on.'),
    component: req(3, string, 'Component that owns the operation, such as provisioner.'),
    process: req(4, string, 'Process in which the component runs.'),
    operation: req(5, string, 'What the component does, such as Provision or Attach.'),
    phase: req(
      6,
      oneOf(...OPERATION_PHASES),
      'Running; Retrying after a failure; or Waiting for a time, an object or a worker.',
    ),
    reason: opt(7, string, 'Machine-readable reason for the phase, in CamelCase.'),
    message: opt(8, string, 'Human-readable result of the last attempt.'),
    attempts: opt(9, int32, 'Number of attempts so far, including one that is running.'),
    started: opt(10, time, 'When the operation was first queued.'),
    lastAttempt: opt(11, time, 'When the last attempt started.'),
    nextAttempt: opt(12, time, 'When the next attempt starts, unless a change starts it earlier.'),
    driverAnswer: opt(13, driverAnswer, 'Last error response of the CSI driver, if the operation calls one.'),
    waitsFor: opt(14, objectReference, 'The object that the operation waits for, if it is known.'),
  },
)
export type Operation = Infer<typeof operation>

const operationReference = object('dev.stowage.v1.OperationReference', 'Refers to an operation.', {
  namespace: req(1, string, 'Namespace of the operation.'),
  name: req(2, string, 'Name of the operation.'),
})
export type OperationReference = Infer<typeof operationReference>

const operationReportSpec = object(
  'dev.stowage.v1.OperationReportSpec',
  'Changes to the operations of a process, its activities and the usage of its volumes.',
  {
    process: req(1, string, 'The reporting process.'),
    isComplete: opt(
      2,
      boolean,
      'Whether the operations are the first of a complete list: all earlier operations of the process are removed.',
    ),
    operations: opt(3, list(operation), 'New and changed operations.'),
    removed: opt(4, list(operationReference), 'Operations that no longer exist.'),
    activities: opt(5, list(activity), 'Attempts and driver calls since the last report, for the journal of volumes.'),
    volumes: opt(6, list(volumeUsage), 'Usage of the volumes that the process has mounted.'),
    replacesVolumes: opt(7, boolean, 'Whether the volumes replace those that the process has reported before.'),
  },
)
export type OperationReportSpec = Infer<typeof operationReportSpec>

const operationReportStatus = object('dev.stowage.v1.OperationReportStatus', 'The response to a report.', {
  isKnown: opt(1, boolean, 'Whether the server knows the process. If not, the process sends a complete list.'),
})
export type OperationReportStatus = Infer<typeof operationReportStatus>

export const operationReport = object(
  'dev.stowage.v1.OperationReport',
  'Reports the operations, activities and volume usage of a process to the API server. A report is not stored.',
  {
    metadata: req(1, objectMeta, 'Not used.'),
    spec: req(2, operationReportSpec, 'The changes since the last report.'),
    status: opt(3, operationReportStatus, 'The response of the server.'),
  },
)
export type OperationReport = Infer<typeof operationReport>
