// Shows the usage of quotas after new claims, and how many claims would fit, computed in the page from the displayed quotas.
import { useSignal } from '@preact/signals'
import { QuotaEffects } from '../../actions/quota-effects.tsx'
import { Panel } from '../../components/panel.tsx'
import { StatusIcon } from '../../components/status.tsx'
import { pluralize } from '../../logic/format.ts'
import { readSize } from '../../logic/quantity.ts'
import { computeQuotaEffects, countFittingClaims } from '../../logic/quota-check.ts'
import { classes, quotas, useCollections } from '../../state/collections.ts'

export function QuotaWhatIf({ namespaces }: { readonly namespaces: readonly string[] }) {
  useCollections(classes)
  const namespace = useSignal('')
  const className = useSignal('')
  const size = useSignal('10Gi')
  const count = useSignal('5')
  const chosen = namespace.value || namespaces[0] || ''
  const parsed = readSize(size.value)
  const claims = Number(count.value)
  const isCount = Number.isInteger(claims) && claims >= 1
  const request =
    'bytes' in parsed && isCount ? { namespace: chosen, className: className.value || undefined } : undefined
  const bytes = 'bytes' in parsed ? parsed.bytes : 0
  const rows = [...quotas.rows.values()]
  const effects = request ? computeQuotaEffects(rows, { ...request, bytes: bytes * claims, claims }) : []
  const fitting = request ? countFittingClaims(rows, { ...request, bytes }) : undefined
  return (
    <Panel title="What if" note="computed, nothing is created">
      <div class="form-row">
        <Choice
          label="Namespace"
          value={chosen}
          options={namespaces}
          onChange={(value) => {
            namespace.value = value
          }}
        />
        <Choice
          label="Class"
          value={className.value}
          options={[...classes.rows.values()].map(({ name }) => name).sort()}
          emptyLabel="default"
          onChange={(value) => {
            className.value = value
          }}
        />
        <label class="field">
          <span>Claims</span>
          <input
            class="input"
            type="number"
            min={1}
            value={count.value}
            onInput={({ currentTarget }) => {
              count.value = currentTarget.value
            }}
          />
        </label>
        <label class="field">
          <span>Size of each</span>
          <input
            class="input"
            value={size.value}
            onInput={({ currentTarget }) => {
              size.value = currentTarget.value
            }}
          />
        </label>
      </div>
      {'problem' in parsed && <p class="input-problem">{parsed.problem}</p>}
      {!isCount && <p class="input-problem">The number of claims must be 1 or more.</p>}
      {request && (
        <div aria-live="polite" class="stack-lines">
          <QuotaEffects effects={effects} />
          {fitting !== undefined && (
            <p class={`status tone-${fitting >= claims ? 'ok' : 'bad'}`}>
              <StatusIcon tone={fitting >= claims ? 'ok' : 'bad'} />
              {fitting === 0 ? 'No claim of this size fits.' : `Up to ${pluralize(fitting, 'claim')} of this size fit.`}
            </p>
          )}
        </div>
      )}
    </Panel>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly string[]
  readonly emptyLabel?: string
  onChange(value: string): void
}

const Choice = ({ label, value, options, emptyLabel, onChange }: ChoiceProps) => (
  <label class="field">
    <span>{label}</span>
    <select class="input" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      {emptyLabel !== undefined && <option value="">{emptyLabel}</option>}
      {options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  </label>
)
