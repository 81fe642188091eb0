// Formats the operations of a process as the JSON of an OperationList, as the API server returns it.
import { operationKind } from '../../api/kinds/operation/operation.ts'
import type { Operation } from '../../api/kinds/operation/operation-schema.ts'

export function operationListOf(items: readonly Operation[]): string {
  const { kind, group, versions } = operationKind
  const apiVersion = `${group}/${versions[0]}`
  return `${JSON.stringify({ kind: `${kind}List`, apiVersion, metadata: {}, items }, null, 2)}\n`
}
