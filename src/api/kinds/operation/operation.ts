// Declares Operation: work that a component does now or waits to do. The API server keeps operations in memory only, as the
// components report them.
import { ageOf, nameColumn, shortDuration } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { type Operation, operation } from './operation-schema.ts'

export const STOWAGE_GROUP = 'stowage.dev'

/** Labels that every operation has. */
export const COMPONENT_LABEL = 'stowage.dev/component'
export const OPERATION_LABEL = 'stowage.dev/operation'

/**
 * Label of operations that this server has received from another server on the same store. The value is the address of
 * that server, in which `-` replaces characters that a label value cannot have.
 */
export const SERVER_LABEL = 'stowage.dev/server'

/** The namespace of operations on objects without a namespace, as for events. */
export const CLUSTER_OPERATIONS_NAMESPACE = 'default'

/** Longer messages are truncated in cells. */
const MESSAGE_CELL_LENGTH_MAX = 120

export const operationKind = defineKind<Operation>({
  group: STOWAGE_GROUP,
  versions: ['v1'],
  kind: 'Operation',
  plural: 'operations',
  singular: 'operation',
  namespaced: true,
  type: operation,
  isVolatile: true,

  nameErrors: dns1123SubdomainProblems,
  validate() {}, // clients cannot write operations; the API server checks reports of them

  selectableFields: {
    component: ({ component }) => component,
    'object.kind': ({ object }) => object.kind ?? '',
    'object.name': ({ object }) => object.name ?? '',
    'object.uid': ({ object }) => object.uid ?? '',
    operation: (object) => object.operation,
    phase: ({ phase }) => phase,
    process: (object) => object.process,
  },

  columns: [
    nameColumn,
    {
      name: 'Object',
      type: 'string',
      doc: 'Kind and name of the object that the operation works on.',
      cell: ({ object }) => `${object.kind ?? ''}/${object.name ?? ''}`,
    },
    { name: 'Operation', type: 'string', doc: 'What the component does.', cell: (object) => object.operation },
    { name: 'Phase', type: 'string', doc: 'Running, Retrying or Waiting.', cell: ({ phase }) => phase },
    { name: 'Reason', type: 'string', doc: 'Reason for the phase.', cell: ({ reason }) => reason },
    { name: 'Attempts', type: 'integer', doc: 'Number of attempts so far.', cell: ({ attempts }) => attempts ?? 0 },
    {
      name: 'Next',
      type: 'string',
      doc: 'Time until the next attempt; empty if only a change starts it.',
      cell: ({ nextAttempt }, { nowMs }) => nextAttempt && shortDuration(Math.max(0, Date.parse(nextAttempt) - nowMs)),
    },
    {
      name: 'Age',
      type: 'string',
      doc: 'Time since the operation was first queued.',
      cell: ({ started }, { nowMs }) => ageOf(started, nowMs),
    },
    {
      name: 'Message',
      type: 'string',
      doc: 'Result of the last attempt.',
      cell: ({ message = '' }) =>
        message.length > MESSAGE_CELL_LENGTH_MAX ? `${message.slice(0, MESSAGE_CELL_LENGTH_MAX)}…` : message,
    },
    {
      name: 'Component',
      type: 'string',
      doc: 'Component that owns the operation.',
      wide: true,
      cell: ({ component }) => component,
    },
    {
      name: 'Process',
      type: 'string',
      doc: 'Process in which the component runs.',
      wide: true,
      cell: (object) => object.process,
    },
    {
      name: 'Driver Answer',
      type: 'string',
      doc: "Method and gRPC code of the CSI driver's last error response.",
      wide: true,
      cell: ({ driverAnswer }) => driverAnswer && `${driverAnswer.method}: ${driverAnswer.code}`,
    },
    {
      name: 'Waits For',
      type: 'string',
      doc: 'The object that the operation waits for.',
      wide: true,
      cell: ({ waitsFor }) => waitsFor && `${waitsFor.kind ?? ''}/${waitsFor.name ?? ''}`,
    },
  ],
  deleteReturnsObject: false,
})
