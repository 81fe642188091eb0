// Declares OperationReport, with which a process outside the API server reports its operations, its activities and the
// usage of its volumes. A report is not stored.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { STOWAGE_GROUP } from './operation.ts'
import { type OperationReport, operationReport } from './operation-schema.ts'

export const operationReportKind = defineKind<OperationReport>({
  group: STOWAGE_GROUP,
  versions: ['v1'],
  kind: 'OperationReport',
  plural: 'operationreports',
  singular: 'operationreport',
  namespaced: false,
  type: operationReport,
  isReview: true,
  nameErrors: () => [],
  validate() {},
  columns: [nameColumn, createdAtColumn],
  deleteReturnsObject: false,
})

/**
 * The maximum number of operations and removals together in one report, and the maximum number of its activities. A report
 * with more is rejected.
 */
export const REPORTED_OPERATIONS_MAX = 500
/**
 * The maximum number of volumes in one report. A report with more is rejected, so a process with more volumes reports only the
 * first ones.
 */
export const REPORTED_VOLUMES_MAX = 500
