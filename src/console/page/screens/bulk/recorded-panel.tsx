// Shows the runs that are recorded on claims, including those of other machines. Such runs are resumed and undone with the
// command line.
import type { RecordedRun } from '../../../protocol.ts'
import { Meter } from '../../components/meter.tsx'
import { Panel } from '../../components/panel.tsx'
import { formatCount } from '../../logic/format.ts'

export const RecordedPanel = ({ runs }: { readonly runs: readonly RecordedRun[] }) => (
  <Panel title="Recorded on claims" note="also by other machines" isFlush>
    <table>
      <thead>
        <tr>
          <th scope="col">Run</th>
          <th scope="col">Change</th>
          <th scope="col">Namespaces</th>
          <th scope="col">Progress</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <td class="mono">{run.id}</td>
            <td>
              {run.isUndo ? 'undo: ' : ''}
              {run.kind === 'grow' ? `grow by ${run.by}` : `${run.from || 'no class'} → ${run.to}`}
            </td>
            <td class="wrap-anywhere">{run.namespaces.join(', ')}</td>
            <td class="bar-cell">
              <span class="size-cell">
                <Meter share={run.claims === 0 ? 0 : run.completed / run.claims} label="Completed" isNeutral />
                {formatCount(run.completed)}/{formatCount(run.claims)}
              </span>
            </td>
            <td>{run.isClosed ? 'complete' : 'open'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Panel>
)
