// The columns of the claims table.
import { Age } from '../../components/age.tsx'
import type { Column } from '../../components/grid.tsx'
import { Meter } from '../../components/meter.tsx'
import { Status } from '../../components/status.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import { formatBytes, formatPercent } from '../../logic/format.ts'
import { whyLines } from '../../state/data.ts'

const text = (value: string | undefined) =>
  value ? (
    <span class="truncate" title={value}>
      {value}
    </span>
  ) : (
    <span class="muted">–</span>
  )

export const CLAIM_COLUMNS: readonly Column<ClaimView>[] = [
  {
    id: 'namespace',
    title: 'Namespace',
    width: 'minmax(6rem, 0.8fr)',
    isSortable: true,
    minTableRem: 44,
    cell: ({ namespace }) => (
      <span class="truncate muted" title={namespace}>
        {namespace}
      </span>
    ),
  },
  {
    id: 'name',
    title: 'Name',
    width: 'minmax(9rem, 1.4fr)',
    isSortable: true,
    cell: ({ name }) => (
      <strong class="truncate" title={name}>
        {name}
      </strong>
    ),
  },
  { id: 'status', title: 'Status', width: '8.5rem', isSortable: true, cell: ({ status }) => <Status {...status} /> },
  {
    id: 'why',
    title: 'Why',
    width: 'minmax(10rem, 2.6fr)',
    isSortable: true,
    minTableRem: 52,
    cell: ({ why, status }) => (why ? text(why.message) : status.tone === 'ok' ? <span class="muted" /> : <NoCause />),
  },
  {
    id: 'class',
    title: 'Class',
    width: 'minmax(5rem, 0.7fr)',
    isSortable: true,
    minTableRem: 60,
    cell: ({ claim }) => text(claim.className),
  },
  {
    id: 'attributes',
    title: 'Attributes',
    width: 'minmax(5rem, 0.7fr)',
    isSortable: true,
    minTableRem: 77,
    cell: ({ claim: { attributesClass, targetAttributesClass } }) =>
      targetAttributesClass ? text(`${attributesClass ?? 'none'} → ${targetAttributesClass}`) : text(attributesClass),
  },
  {
    id: 'size',
    title: 'Size',
    width: '6.5rem',
    isSortable: true,
    isNumber: true,
    cell: ({ claim }) => <Size view={claim} />,
  },
  {
    id: 'used',
    title: 'Used',
    width: '8.5rem',
    isSortable: true,
    isNumber: true,
    minTableRem: 64,
    cell: (view) => <Used view={view} />,
  },
  {
    id: 'node',
    title: 'Node',
    width: 'minmax(5rem, 0.7fr)',
    isSortable: true,
    minTableRem: 68,
    cell: ({ node }) => text(node),
  },
  {
    id: 'pods',
    title: 'Pods',
    width: 'minmax(5rem, 0.9fr)',
    isSortable: true,
    minTableRem: 73,
    cell: ({ pods }) => <PodNames names={pods.map(({ name }) => name)} />,
  },
  {
    id: 'age',
    title: 'Age',
    width: '4.5rem',
    isSortable: true,
    isNumber: true,
    minTableRem: 48,
    cell: ({ claim }) => <Age timeMs={claim.createdMs} />,
  },
]

/** Shown for a claim that is not ready until its cause has been read, with the problem if it cannot be read. */
function NoCause() {
  const { problem } = whyLines.state.value
  return problem === undefined ? <span class="muted">…</span> : <Unavailable reason={problem} />
}

/** The size of the volume, and the requested size if it is larger. */
function Size({ view: { requestBytes, capacityBytes, request, capacity } }: { readonly view: ClaimView['claim'] }) {
  const isDifferent = capacityBytes !== undefined && requestBytes !== undefined && requestBytes > capacityBytes
  if (isDifferent)
    return (
      <span title={`The volume has ${capacity}, the claim requests ${request}`}>
        {formatBytes(capacityBytes)} <span class="muted">→</span> {formatBytes(requestBytes)}
      </span>
    )
  const bytes = capacityBytes ?? requestBytes
  return bytes === undefined ? (
    <span class="muted">–</span>
  ) : (
    <span title={capacity ? `requested ${request}, granted ${capacity}` : `requested ${request}`}>
      {formatBytes(bytes)}
    </span>
  )
}

function Used({ view: { usage, usedShare, claim } }: { readonly view: ClaimView }) {
  if (usedShare !== undefined && usage?.usedBytes !== undefined)
    return (
      <span class="size-cell" title={`${formatBytes(usage.usedBytes)} used, ${formatPercent(usedShare)}`}>
        <Meter share={usedShare} label="Used" />
        {formatBytes(usage.usedBytes)}
      </span>
    )
  if (claim.phase !== 'Bound') return <span class="muted">–</span>
  return <Unavailable short reason={usage?.unknownReason ?? 'The usage has not been measured yet.'} />
}

/** A claim may be used by hundreds of pods. */
function PodNames({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span class="muted">–</span>
  const title = names.slice(0, 20).join(', ')
  return (
    <span class="truncate" title={title}>
      {names[0]}
      {names.length > 1 && <span class="muted"> +{names.length - 1}</span>}
    </span>
  )
}

/** The claim in two lines, for narrow screens. */
export const compactClaim = (view: ClaimView) => (
  <span class="two-lines">
    <span>
      <strong class="truncate">{view.name}</strong>
      <Status {...view.status} />
    </span>
    <span class="muted">
      <span class="truncate">{view.why?.message ?? `${view.namespace} · ${view.claim.className ?? 'no class'}`}</span>
      <Size view={view.claim} />
    </span>
  </span>
)
