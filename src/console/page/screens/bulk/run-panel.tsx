// One run: its progress, its claims that are in progress or have failed, and the buttons to pause, resume and undo it.
import { useSignal } from '@preact/signals'
import type { BulkRun } from '../../../protocol.ts'
import { Age } from '../../components/age.tsx'
import { Command } from '../../components/command.tsx'
import { Panel } from '../../components/panel.tsx'
import { Status, StatusIcon } from '../../components/status.tsx'
import { type BulkActionName, describeRequest, listActions, STATE_WORDS } from '../../logic/bulk.ts'
import { formatCount } from '../../logic/format.ts'
import { linkTo } from '../../logic/url.ts'
import { messageOf, request } from '../../state/api.ts'
import { bulk } from '../../state/data.ts'
import { showToast } from '../../state/toasts.ts'

const LABELS: Readonly<Record<BulkActionName, string>> = { pause: 'Pause', resume: 'Resume', undo: 'Undo' }
const CLAIMS_MAX = 12

export function RunPanel({ run }: { readonly run: BulkRun }) {
  const isBusy = useSignal(false)
  const act = async (action: BulkActionName) => {
    isBusy.value = true
    try {
      await request<BulkRun>(`/data/bulk/${action}`, { method: 'POST', body: { id: run.id } })
    } catch (error) {
      showToast(messageOf(error), 'bad')
    } finally {
      isBusy.value = false
      bulk.refresh()
    }
  }
  const { counts, total } = run
  const finished = counts.done + counts.unchanged
  const title = `${run.isUndo ? 'Undo: ' : ''}${describeRequest(run.request)}`
  return (
    <Panel title={title} more={<Status {...STATE_WORDS[run.state]} />}>
      <Progress run={run} />
      <p class="muted">
        {total === undefined ? 'selecting claims' : `${formatCount(finished)} of ${formatCount(total)} done`}
        {counts.failed > 0 && `, ${formatCount(counts.failed)} failed`} · started{' '}
        <Age timeMs={Date.parse(run.startedAt)} /> ago
      </p>
      {run.message !== undefined && (
        <p class="note">
          <StatusIcon tone="warn" />
          <span>{run.message}</span>
        </p>
      )}
      {run.claims.length > 0 && (
        <ul class="list">
          {run.claims.slice(0, CLAIMS_MAX).map(({ namespace, name, state, message }) => (
            <li key={`${namespace}/${name}`}>
              <a class="nowrap" href={linkTo('claims', { claim: `${namespace}/${name}` })}>
                {namespace}/{name}
              </a>
              <span class={`truncate${state === 'failed' ? ' tone-bad' : ' muted'}`} title={message}>
                {message}
              </span>
            </li>
          ))}
        </ul>
      )}
      <div class="drawer-actions">
        {listActions(run).map((action) => (
          <button
            key={action}
            type="button"
            class="button button-small"
            disabled={isBusy.value}
            onClick={() => void act(action)}
          >
            {LABELS[action]}
          </button>
        ))}
      </div>
      <Command text={run.command} />
    </Panel>
  )
}

function Progress({ run: { counts, total } }: { readonly run: BulkRun }) {
  if (!total) return null
  const finished = counts.done + counts.unchanged
  const rest = Math.max(0, total - finished - counts.failed)
  return (
    <div class="stack" role="img" aria-label={`${finished} of ${total} done, ${counts.failed} failed`}>
      {finished > 0 && <span class="fill-ok" style={{ flexGrow: finished }} />}
      {counts.failed > 0 && <span class="fill-bad" style={{ flexGrow: counts.failed }} />}
      {rest > 0 && <span style={{ flexGrow: rest }} />}
    </div>
  )
}
