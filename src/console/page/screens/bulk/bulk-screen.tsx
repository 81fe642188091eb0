// Shows the runs of grow and migrate with their progress, and the controls to preview, start, pause, resume and undo them.
import { Empty } from '../../components/empty.tsx'
import { pluralize } from '../../logic/format.ts'
import { bulk, info } from '../../state/data.ts'
import { usePolled } from '../../state/polled.ts'
import { NewRun } from './new-run.tsx'
import { RecordedPanel } from './recorded-panel.tsx'
import { RunPanel } from './run-panel.tsx'

export function BulkScreen() {
  const { value, problem } = usePolled(bulk)
  const feature = info.state.value.value?.features.bulk
  const running = value?.runs.filter(({ state }) => state === 'running').length ?? 0
  return (
    <section class="screen" aria-labelledby="bulk-title">
      <header class="screen-head">
        <h1 id="bulk-title">Bulk</h1>
        <span class="muted">
          {value ? pluralize(value.runs.length, 'run') : ''}
          {running > 0 && `, ${running} running`}
        </span>
      </header>
      <div class="screen-scroll">
        {problem !== undefined && <p class="note">{problem}</p>}
        {feature && !feature.available ? (
          <p class="note">Bulk runs are unavailable. {feature.reason}</p>
        ) : (
          <div class="panels">
            <div class="panel-column span-5-wide">
              <NewRun />
            </div>
            <div class="panel-column span-7-wide">
              {value?.runs.length === 0 && (
                <Empty title="This console has no runs yet.">
                  <p>
                    A run grows many claims or moves them to another attributes class, a limited number at a time, and
                    stops when too many fail. It continues while this page is closed, as long as the console runs.
                  </p>
                </Empty>
              )}
              {value?.runs.map((run) => (
                <RunPanel key={run.id} run={run} />
              ))}
              {value && value.recorded.length > 0 && <RecordedPanel runs={value.recorded} />}
            </div>
          </div>
        )}
      </div>
    </section>
  )
}
