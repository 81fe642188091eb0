// The filters of the claims table. All of them are in the URL; a set of filters can be saved under a name in this browser.
import { signal } from '@preact/signals'
import { Icon } from '../../components/icon.tsx'
import { StatusIcon } from '../../components/status.tsx'
import type { Tone } from '../../logic/claim-status.ts'
import { formatCount } from '../../logic/format.ts'
import { linkTo, parseList, toggleInList } from '../../logic/url.ts'
import { claimTallies, claimViewsVersion } from '../../state/claim-table.ts'
import { readPreference, writePreference } from '../../state/preferences.ts'
import { setParams } from '../../state/route.ts'

type Params = Readonly<Record<string, string>>

const TONES: Readonly<Record<string, Tone>> = {
  Bound: 'ok',
  Pending: 'wait',
  Lost: 'bad',
  'Expansion failed': 'bad',
  'Change failed': 'bad',
  Degraded: 'warn',
}

export function ClaimFilters({ params }: { readonly params: Params }) {
  void claimViewsVersion.value
  const statuses = [...new Set([...claimTallies.status.values(), ...parseList(params.status)])]
  const chosen = parseList(params.status)
  return (
    <search class="toolbar" aria-label="Filter claims">
      <label class="search">
        <span class="sr-only">Search claims</span>
        <Icon name="search" />
        <input
          type="search"
          class="input"
          placeholder="Search, or class:fast -ns:test"
          value={params.q ?? ''}
          onInput={({ currentTarget }) => setParams({ q: currentTarget.value })}
        />
      </label>
      <Choice name="ns" label="Namespace" value={params.ns} values={claimTallies.namespace.values()} />
      <Choice name="class" label="Class" value={params.class} values={claimTallies.class.values()} />
      <Choice name="node" label="Node" value={params.node} values={claimTallies.node.values()} />
      <div class="chips">
        {statuses.map((status) => (
          <button
            key={status}
            type="button"
            class="chip"
            aria-pressed={chosen.includes(status)}
            onClick={() => setParams({ status: toggleInList(params.status, status) })}
          >
            <StatusIcon tone={TONES[status] ?? 'busy'} />
            {status} <span class="chip-count">{formatCount(claimTallies.status.count(status))}</span>
          </button>
        ))}
        <button
          type="button"
          class="chip"
          aria-pressed={params.problems === '1'}
          onClick={() => setParams({ problems: params.problems === '1' ? '' : '1' })}
        >
          <StatusIcon tone="bad" />
          Problems{' '}
          <span class="chip-count">
            {formatCount(claimTallies.tone.count('bad') + claimTallies.tone.count('warn'))}
          </span>
        </button>
      </div>
      <SavedFilters params={params} />
    </search>
  )
}

interface ChoiceProps {
  readonly name: string
  readonly label: string
  readonly value: string | undefined
  readonly values: readonly string[]
}

/** Above this number of values, the user types the value instead of choosing it. */
const OPTIONS_MAX = 200

function Choice({ name, label, value = '', values }: ChoiceProps) {
  if (values.length < 2 && value === '') return null
  if (values.length > OPTIONS_MAX)
    return (
      <label>
        <span class="sr-only">{label}</span>
        <input
          class="input"
          placeholder={label}
          value={value}
          onChange={({ currentTarget }) => setParams({ [name]: currentTarget.value.trim() })}
        />
      </label>
    )
  const options = value === '' || values.includes(value) ? values : [...values, value]
  return (
    <label>
      <span class="sr-only">{label}</span>
      <select class="input" value={value} onChange={({ currentTarget }) => setParams({ [name]: currentTarget.value })}>
        <option value="">{label}: all</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  )
}

interface SavedFilter {
  readonly name: string
  readonly params: Params
}

const PREFERENCE = 'claim-filters'
const SAVED_MAX = 20
const FILTER_PARAMS = ['q', 'ns', 'class', 'node', 'status', 'problems', 'sort'] as const

const saved = signal<readonly SavedFilter[]>(readSaved())

function readSaved(): readonly SavedFilter[] {
  try {
    return JSON.parse(readPreference(PREFERENCE) ?? '[]') as SavedFilter[]
  } catch {
    return []
  }
}

function storeFilters(filters: readonly SavedFilter[]): void {
  saved.value = filters.slice(-SAVED_MAX)
  writePreference(PREFERENCE, JSON.stringify(saved.value))
}

function SavedFilters({ params }: { readonly params: Params }) {
  const filter = Object.fromEntries(FILTER_PARAMS.flatMap((key) => (params[key] ? [[key, params[key]]] : [])))
  const isCurrent = (other: Params) => linkTo('claims', other) === linkTo('claims', filter)
  const save = () => {
    const name = Object.values(filter).join(' ')
    storeFilters([...saved.value.filter((other) => other.name !== name), { name, params: filter }])
  }
  return (
    <div class="chips">
      {saved.value.map(({ name, params: savedParams }) => (
        <span key={name} class="chip">
          <a href={linkTo('claims', savedParams)} aria-current={isCurrent(savedParams) ? 'true' : undefined}>
            {name}
          </a>
          <button
            type="button"
            class="button-link"
            aria-label={`Forget the filter ${name}`}
            onClick={() => storeFilters(saved.value.filter((other) => other.name !== name))}
          >
            ×
          </button>
        </span>
      ))}
      {Object.keys(filter).length > 0 && !saved.value.some((other) => isCurrent(other.params)) && (
        <button type="button" class="chip" onClick={save}>
          <Icon name="star" />
          Save filter
        </button>
      )}
    </div>
  )
}
