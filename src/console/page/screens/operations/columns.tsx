// The columns of the operations table.
import { Age, Until } from '../../components/age.tsx'
import type { Column } from '../../components/grid.tsx'
import { Status } from '../../components/status.tsx'
import { statusOfOperation } from '../../logic/operations.ts'
import type { OperationRow } from '../../rows/cluster.ts'

const text = (value: string | undefined) => (
  <span class={`truncate${value ? '' : ' muted'}`} title={value}>
    {value || '–'}
  </span>
)

export const OPERATION_COLUMNS: readonly Column<OperationRow>[] = [
  {
    id: 'object',
    title: 'Object',
    width: 'minmax(10rem, 1.6fr)',
    isSortable: true,
    cell: ({ objectKind, objectName, namespace }) => (
      <span class="truncate" title={`${objectKind} ${namespace}/${objectName}`}>
        <strong>{objectName}</strong> <span class="muted">{namespace}</span>
      </span>
    ),
  },
  {
    id: 'operation',
    title: 'Operation',
    width: '7rem',
    isSortable: true,
    minTableRem: 50,
    cell: ({ operation }) => text(operation),
  },
  {
    id: 'phase',
    title: 'Phase',
    width: '6.5rem',
    isSortable: true,
    cell: (row) => <Status {...statusOfOperation(row)} />,
  },
  {
    id: 'reason',
    title: 'Reason',
    width: 'minmax(8rem, 1fr)',
    isSortable: true,
    minTableRem: 60,
    cell: ({ reason }) => text(reason),
  },
  {
    id: 'attempts',
    title: 'Attempts',
    width: '5.5rem',
    isNumber: true,
    isSortable: true,
    cell: ({ attempts }) => attempts,
  },
  {
    id: 'next',
    title: 'Next retry',
    width: '6rem',
    isNumber: true,
    isSortable: true,
    minTableRem: 42,
    cell: ({ nextMs }) => <Until timeMs={nextMs} />,
  },
  {
    id: 'answer',
    title: 'Last response',
    width: 'minmax(10rem, 1.2fr)',
    isSortable: true,
    minTableRem: 72,
    cell: ({ lastResponse }) => text(lastResponse),
  },
  {
    id: 'message',
    title: 'Message',
    width: 'minmax(9rem, 2fr)',
    minTableRem: 66,
    cell: ({ message }) => text(message),
  },
  {
    id: 'age',
    title: 'Age',
    width: '4.5rem',
    isNumber: true,
    isSortable: true,
    minTableRem: 46,
    cell: ({ startedMs }) => <Age timeMs={startedMs} />,
  },
]

/** The operation in two lines, for narrow screens. */
export const compactOperation = (row: OperationRow) => (
  <span class="two-lines">
    <span>
      <strong class="truncate">
        {row.operation} {row.objectName}
      </strong>
      <Status {...statusOfOperation(row)} />
    </span>
    <span class="muted">
      <span class="truncate">{row.message || row.reason || row.namespace}</span>
      <span class="nowrap">×{row.attempts}</span>
    </span>
  </span>
)
