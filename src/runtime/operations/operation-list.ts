// Formats a process's operations as an OperationList in indented JSON. Unlike a list of the API server, it has no
// resourceVersion.
import { operationKind } from '../../api/kinds/operation/operation.ts'
import type { Operation } from '../../api/kinds/operation/operation-schema.ts'

export function formatOperationList(items: readonly Operation[]): string {
  const { kind, group, versions } = operationKind
  const apiVersion = `${group}/${versions[0]}`
  return `${JSON.stringify({ kind: `${kind}List`, apiVersion, metadata: {}, items }, null, 2)}\n`
}
