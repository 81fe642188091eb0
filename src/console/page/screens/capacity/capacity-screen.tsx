// Storage by class and segment as a heat map, the details of one cell, and a simulation of whether new claims would fit.
import { useMemo } from 'preact/hooks'
import { Empty, ListError, Skeleton } from '../../components/empty.tsx'
import { Panel } from '../../components/panel.tsx'
import { buildHeatMap } from '../../logic/heat-map.ts'
import { claimViewsVersion, useClaimTable, viewOfClaim } from '../../state/claim-table.ts'
import { capacities, nodes, useCollections, volumes } from '../../state/collections.ts'
import { usageByClaim } from '../../state/data.ts'
import { route, setParams } from '../../state/route.ts'
import { CellPanel } from './cell-panel.tsx'
import { HeatTable } from './heat-table.tsx'
import { useReportAges } from './report-ages.ts'
import { WhatFits } from './what-fits.tsx'

export function CapacityScreen() {
  useClaimTable()
  useCollections(capacities, nodes, volumes)
  const ages = useReportAges()
  const map = useMemo(
    () =>
      buildHeatMap({
        capacities: capacities.rows.values(),
        volumes: volumes.rows.values(),
        nodes: [...nodes.rows.values()],
        usedBytesOf: (claim) => viewOfClaim(claim)?.usage?.usedBytes,
      }),
    [
      capacities.version.value,
      nodes.version.value,
      volumes.version.value,
      usageByClaim.state.value,
      claimViewsVersion.value,
    ],
  )
  const { params } = route.value
  const row = map.rows.find(({ key }) => key === params.segment)
  const cell = row?.cells.get(params.class ?? '')
  const isLoading = capacities.state.value.is === 'loading' || volumes.state.value.is === 'loading'
  const hasFailed = capacities.state.value.error !== undefined // the error is shown instead
  return (
    <section class="screen" aria-labelledby="capacity-title">
      <header class="screen-head">
        <h1 id="capacity-title">Capacity</h1>
        <span class="muted">class × segment, as the drivers report it</span>
      </header>
      <div class="screen-scroll">
        <div class="panels">
          <Panel title="Free storage" span={8} isFlush note="darker cells have a larger promised share">
            {[capacities, volumes, nodes].map((collection) => (
              <ListError key={collection.path} what={NAMES.get(collection)!} state={collection.state.value} />
            ))}
            {isLoading && map.rows.length === 0 ? (
              <Skeleton rows={5} />
            ) : map.rows.length === 0 ? (
              !hasFailed && (
                <Empty title="No driver reports capacity.">
                  <p>
                    The provisioner publishes capacity with --enable-capacity. If a CSIDriver has storageCapacity: true
                    but no capacity is published, its volumes fit on no node. If storageCapacity is false, capacity is
                    not checked.
                  </p>
                </Empty>
              )
            ) : (
              <HeatTable
                map={map}
                ages={ages}
                selected={cell}
                onSelect={({ segmentKey, className }) => setParams({ segment: segmentKey, class: className })}
              />
            )}
          </Panel>
          <div class="panel-column span-4">
            {row && cell && <CellPanel row={row} cell={cell} ages={ages} />}
            <WhatFits />
          </div>
        </div>
      </div>
    </section>
  )
}

const NAMES = new Map<unknown, string>([
  [capacities, 'Capacity reports'],
  [volumes, 'Volumes'],
  [nodes, 'Nodes'],
])
