// The CSI drivers: capabilities, classes, calls with their errors and latency, volumes without a claim, leaked storage, and the
// findings of doctor.
import { useMemo } from 'preact/hooks'
import { Empty, ListCount, ListError, Skeleton } from '../../components/empty.tsx'
import { buildDriverViews } from '../../logic/driver-view.ts'
import { pluralize } from '../../logic/format.ts'
import { classes, csiNodes, drivers, nodes, useCollections, volumes } from '../../state/collections.ts'
import { history } from '../../state/data.ts'
import { usePolled } from '../../state/polled.ts'
import { DriverPanel } from './driver-panel.tsx'
import { FindingsPanel } from './findings-panel.tsx'

export function DriversScreen() {
  useCollections(drivers, classes, csiNodes, volumes, nodes)
  const { value, problem } = usePolled(history)
  const views = useMemo(
    () =>
      buildDriverViews({
        drivers: drivers.rows.values(),
        classes: classes.rows.values(),
        csiNodes: csiNodes.rows.values(),
        volumes: volumes.rows.values(),
      }),
    [drivers.version.value, classes.version.value, csiNodes.version.value, volumes.version.value],
  )
  const state = drivers.state.value
  return (
    <section class="screen" aria-labelledby="drivers-title">
      <header class="screen-head">
        <h1 id="drivers-title">Drivers</h1>
        <ListCount state={state}>{pluralize(views.length, 'driver')}</ListCount>
      </header>
      <div class="screen-scroll">
        <div class="panels">
          {state.is === 'failed' && (
            <div class="panel-column">
              <ListError what="CSIDriver objects" state={state} />
            </div>
          )}
          {views.length === 0 &&
            (state.is === 'loading' ? (
              <div class="panel-column">
                <Skeleton rows={6} />
              </div>
            ) : (
              <div class="panel-column">
                <Empty title="There are no drivers.">
                  <p>
                    A driver appears here when it has a CSIDriver object, a class names it, a node has registered it, or
                    a volume uses it.
                  </p>
                </Empty>
              </div>
            ))}
          {views.map((view) => (
            <DriverPanel key={view.name} view={view} history={value} problem={problem} nodeCount={nodes.rows.size} />
          ))}
          <FindingsPanel />
        </div>
      </div>
    </section>
  )
}
