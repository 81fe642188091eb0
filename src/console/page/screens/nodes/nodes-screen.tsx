// All nodes: health, drivers, attach slots, storage, volumes and IO; a drawer with the volumes of one node.
import { useMemo } from 'preact/hooks'
import { Age } from '../../components/age.tsx'
import { Empty, ListCount, ListError, Skeleton } from '../../components/empty.tsx'
import { type Column, Grid } from '../../components/grid.tsx'
import { Meter } from '../../components/meter.tsx'
import { Status } from '../../components/status.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import { formatBytes, formatRate, pluralize } from '../../logic/format.ts'
import { buildNodeViews, compareNodes, type NodeView } from '../../logic/node-view.ts'
import { formatSort, parseSort } from '../../logic/url.ts'
import { claimViews, claimViewsVersion, useClaimTable } from '../../state/claim-table.ts'
import { capacities, classes, csiNodes, nodes, useCollections } from '../../state/collections.ts'
import { focusGridRow } from '../../state/keys.ts'
import { route, setParams } from '../../state/route.ts'
import { NodeDrawer } from './node-drawer.tsx'

const NOT_MEASURED = 'No volume on this node is measured.'

const COLUMNS: readonly Column<NodeView>[] = [
  {
    id: 'name',
    title: 'Name',
    width: 'minmax(8rem, 1.4fr)',
    isSortable: true,
    cell: ({ name }) => <strong class="truncate">{name}</strong>,
  },
  { id: 'status', title: 'Health', width: '8.5rem', isSortable: true, cell: ({ status }) => <Status {...status} /> },
  {
    id: 'drivers',
    title: 'Drivers',
    width: 'minmax(8rem, 1.4fr)',
    minTableRem: 56,
    cell: ({ drivers }) =>
      drivers === undefined ? (
        <Unavailable short reason="The node has no CSINode object." />
      ) : (
        <span class="truncate" title={drivers.map(({ name }) => name).join(', ')}>
          {drivers.map(({ name }) => name).join(', ') || 'none'}
        </span>
      ),
  },
  {
    id: 'slots',
    title: 'Attach slots',
    width: '7rem',
    isNumber: true,
    minTableRem: 48,
    cell: (view) => <Slots view={view} />,
  },
  {
    id: 'pool',
    title: 'Storage',
    width: '12rem',
    isNumber: true,
    isSortable: true,
    minTableRem: 42,
    cell: (view) => <Pool view={view} />,
  },
  {
    id: 'volumes',
    title: 'Volumes',
    width: '5.5rem',
    isNumber: true,
    isSortable: true,
    cell: ({ claims }) => claims.length,
  },
  {
    id: 'iops',
    title: 'IO now',
    width: '6rem',
    isNumber: true,
    isSortable: true,
    minTableRem: 52,
    cell: ({ iops }) => (iops === undefined ? <Unavailable short reason={NOT_MEASURED} /> : formatRate(iops)),
  },
  {
    id: 'throughput',
    title: 'Throughput',
    width: '6.5rem',
    isNumber: true,
    isSortable: true,
    minTableRem: 60,
    cell: ({ throughputBytes }) =>
      throughputBytes === undefined ? <Unavailable short reason={NOT_MEASURED} /> : `${formatBytes(throughputBytes)}/s`,
  },
  {
    id: 'age',
    title: 'Age',
    width: '4.5rem',
    isNumber: true,
    isSortable: true,
    minTableRem: 50,
    cell: ({ node }) => <Age timeMs={node.createdMs} />,
  },
]

export function NodesScreen() {
  useClaimTable()
  useCollections(nodes, csiNodes, capacities, classes)
  const { params } = route.value
  const sort = parseSort(params.sort, 'name')
  const state = nodes.state.value
  const views = useMemo(() => {
    const driverByClass = new Map([...classes.rows.values()].map(({ name, driver }) => [name, driver]))
    return buildNodeViews({
      nodes: [...nodes.rows.values()],
      csiNodes: csiNodes.rows.values(),
      claims: claimViews.values(),
      capacities: capacities.rows.values(),
      driverOf: ({ usage, claim }) => usage?.driver ?? driverByClass.get(claim.className ?? ''),
    })
  }, [
    nodes.version.value,
    csiNodes.version.value,
    capacities.version.value,
    classes.version.value,
    claimViewsVersion.value,
  ])
  const rows = useMemo(() => views.toSorted(compareNodes(sort)), [views, params.sort])
  const selected = views.find(({ name }) => name === params.node)
  const notReady = views.filter(({ status }) => status.tone === 'bad').length
  const close = () => {
    setParams({ node: '' }, 'push')
    focusGridRow(selected?.uid)
  }
  return (
    <section class="screen" aria-labelledby="nodes-title">
      <header class="screen-head">
        <h1 id="nodes-title">Nodes</h1>
        <ListCount state={state}>
          {pluralize(views.length, 'node')}
          {notReady > 0 && `, ${notReady} not ready`}
        </ListCount>
      </header>
      {state.is === 'failed' ? (
        <div class="screen-scroll">
          <ListError what="Nodes" state={state} />
        </div>
      ) : views.length === 0 ? (
        state.is === 'synced' ? (
          <Empty title="There are no nodes." command="stowage node --help">
            <p>A node runs pods and mounts their volumes. The node appears here when its agent has registered it:</p>
          </Empty>
        ) : (
          <Skeleton />
        )
      ) : (
        <div class="split">
          <Grid
            label="Nodes"
            rows={rows}
            columns={COLUMNS}
            compactCell={compactNode}
            sort={sort}
            selectedUid={selected?.uid}
            onSort={(column) =>
              setParams({ sort: formatSort({ column, isDescending: sort.column === column && !sort.isDescending }) })
            }
            onOpen={({ name }) => setParams({ node: name }, 'push')}
            flashValue={({ status }) => status.word}
          />
          {params.node !== undefined && (
            <NodeDrawer key={params.node} name={params.node} view={selected} onClose={close} />
          )}
        </div>
      )}
    </section>
  )
}

function Slots({ view: { drivers } }: { readonly view: NodeView }) {
  if (!drivers) return <Unavailable short reason="The node has no CSINode object." />
  const limited = drivers.filter(({ slots }) => slots !== undefined)
  if (limited.length === 0) return <span class="muted">no limit</span>
  return (
    <span title={limited.map(({ name, usedSlots, slots }) => `${name}: ${usedSlots} of ${slots}`).join(', ')}>
      {limited.map(({ usedSlots, slots }) => `${usedSlots}/${slots}`).join(' ')}
    </span>
  )
}

function Pool({ view: { freeBytes, promisedBytes } }: { readonly view: NodeView }) {
  if (freeBytes === undefined) return <Unavailable short reason="No driver reports storage of this node alone." />
  const total = freeBytes + promisedBytes
  return (
    <span class="size-cell" title={`${formatBytes(promisedBytes)} promised, ${formatBytes(freeBytes)} free`}>
      <Meter share={total === 0 ? 0 : promisedBytes / total} label="Promised" />
      {formatBytes(freeBytes)} free
    </span>
  )
}

const compactNode = (view: NodeView) => (
  <span class="two-lines">
    <span>
      <strong class="truncate">{view.name}</strong>
      <Status {...view.status} />
    </span>
    <span class="muted">
      <span class="truncate">{pluralize(view.claims.length, 'volume')}</span>
      <Pool view={view} />
    </span>
  </span>
)
