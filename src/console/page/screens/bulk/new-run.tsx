// The form for a new run. A run can be started only with the options that were previewed.
import { useSignal } from '@preact/signals'
import type { BulkRequest, BulkRun } from '../../../protocol.ts'
import { Panel } from '../../components/panel.tsx'
import { type BulkForm, readBulkForm } from '../../logic/bulk.ts'
import { messageOf, request } from '../../state/api.ts'
import { attributesClasses, useCollections } from '../../state/collections.ts'
import { bulk } from '../../state/data.ts'
import { route } from '../../state/route.ts'
import { showToast } from '../../state/toasts.ts'
import { Preview, type PreviewReport } from './preview.tsx'

export function NewRun() {
  useCollections(attributesClasses)
  const { params } = route.value
  const form = useSignal<BulkForm>({
    kind: params.kind === 'migrate' ? 'migrate' : 'grow',
    namespace: params.ns ?? '',
    names: params.names ?? '',
    selector: params.selector ?? '',
    mode: 'by',
    size: '10Gi',
    from: '',
    to: '',
    parallel: '1',
    maxFailures: '0',
  })
  const preview = useSignal<{ readonly request: BulkRequest; readonly report: PreviewReport } | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const change = (fields: Partial<BulkForm>) => {
    form.value = { ...form.value, ...fields }
    preview.value = undefined
    problem.value = undefined
  }
  const send = async (run: () => Promise<void>) => {
    isBusy.value = true
    problem.value = undefined
    try {
      await run()
    } catch (error) {
      problem.value = messageOf(error)
    } finally {
      isBusy.value = false
    }
  }
  const showPreview = (event: Event) => {
    event.preventDefault()
    const parsed = readBulkForm(form.value)
    if ('problem' in parsed) {
      problem.value = parsed.problem
      return
    }
    void send(async () => {
      const report = await request<PreviewReport>('/data/bulk/preview', { method: 'POST', body: parsed.request })
      preview.value = { request: parsed.request, report }
    })
  }
  const start = () =>
    void send(async () => {
      await request<BulkRun>('/data/bulk/start', { method: 'POST', body: preview.value!.request })
      preview.value = undefined
      showToast('Started the run.')
      bulk.refresh()
    })
  const { kind, mode } = form.value
  const classNames = [...attributesClasses.rows.values()].map(({ name }) => name).sort()
  return (
    <Panel title="New run">
      <form class="stack-lines" onSubmit={showPreview}>
        <div class="chips">
          <KindButton
            label="Grow claims"
            isPressed={kind === 'grow'}
            onClick={() => change({ kind: 'grow', parallel: '1', maxFailures: '0' })}
          />
          <KindButton
            label="Move to another attributes class"
            isPressed={kind === 'migrate'}
            onClick={() => change({ kind: 'migrate', parallel: '50', maxFailures: '3' })}
          />
        </div>
        <div class="form-row">
          <Text
            label={kind === 'grow' ? 'Namespace' : 'Namespace (empty: all)'}
            value={form.value.namespace}
            onInput={(namespace) => change({ namespace })}
          />
          <Text
            label="Selector, such as app=shop"
            value={form.value.selector}
            onInput={(selector) => change({ selector })}
          />
        </div>
        {kind === 'grow' ? (
          <>
            <Text label="Or names of claims" value={form.value.names} onInput={(names) => change({ names })} />
            <div class="form-row">
              <label class="field">
                <span>Grow</span>
                <select
                  class="input"
                  value={mode}
                  onChange={({ currentTarget }) => change({ mode: currentTarget.value === 'to' ? 'to' : 'by' })}
                >
                  <option value="by">by an amount</option>
                  <option value="to">to a size</option>
                </select>
              </label>
              <Text
                label={mode === 'by' ? 'Amount' : 'Size'}
                value={form.value.size}
                onInput={(size) => change({ size })}
              />
            </div>
          </>
        ) : (
          <div class="form-row">
            <ClassChoice
              label="From"
              value={form.value.from}
              names={classNames}
              emptyLabel="no class"
              onChange={(from) => change({ from })}
            />
            <ClassChoice
              label="To"
              value={form.value.to}
              names={classNames}
              emptyLabel="choose"
              onChange={(to) => change({ to })}
            />
          </div>
        )}
        <div class="form-row">
          <Text label="Claims in progress" value={form.value.parallel} onInput={(parallel) => change({ parallel })} />
          <Text
            label="Stop after more failures than"
            value={form.value.maxFailures}
            onInput={(maxFailures) => change({ maxFailures })}
          />
        </div>
        {problem.value !== undefined && (
          <p class="input-problem" role="alert">
            {problem.value}
          </p>
        )}
        <div class="drawer-actions">
          <button type="submit" class="button" disabled={isBusy.value}>
            Preview
          </button>
          <button
            type="button"
            class="button button-primary"
            disabled={isBusy.value || !preview.value}
            title={preview.value ? undefined : 'Preview the run first.'}
            onClick={start}
          >
            Start
          </button>
        </div>
      </form>
      <div aria-live="polite">{preview.value && <Preview report={preview.value.report} />}</div>
    </Panel>
  )
}

const KindButton = ({
  label,
  isPressed,
  onClick,
}: {
  readonly label: string
  readonly isPressed: boolean
  onClick(): void
}) => (
  <button type="button" class="chip" aria-pressed={isPressed} onClick={onClick}>
    {label}
  </button>
)

interface TextProps {
  readonly label: string
  readonly value: string
  onInput(value: string): void
}

const Text = ({ label, value, onInput }: TextProps) => (
  <label class="field">
    <span>{label}</span>
    <input
      class="input"
      value={value}
      autocomplete="off"
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
    />
  </label>
)

interface ClassChoiceProps {
  readonly label: string
  readonly value: string
  readonly names: readonly string[]
  readonly emptyLabel: string
  onChange(name: string): void
}

const ClassChoice = ({ label, value, names, emptyLabel, onChange }: ClassChoiceProps) => (
  <label class="field">
    <span>{label}</span>
    <select class="input" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      <option value="">{emptyLabel}</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  </label>
)
