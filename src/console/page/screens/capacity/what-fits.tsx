// "What would fit": simulates pods with new claims on the current cluster, as `stowage simulate` does.
import { useSignal } from '@preact/signals'
import type { SimulateRequest, SimulationResult } from '../../../protocol.ts'
import { Panel } from '../../components/panel.tsx'
import { StatusIcon } from '../../components/status.tsx'
import { WhyTree } from '../../components/why-tree.tsx'
import { pluralize } from '../../logic/format.ts'
import { readSize } from '../../logic/quantity.ts'
import { messageOf, request } from '../../state/api.ts'
import { classes, useCollections } from '../../state/collections.ts'

const COUNT_MAX = 1_000
/** Bounds the shown reasons; pods are usually rejected for the same reason. */
const REASONS_MAX = 2

export function WhatFits() {
  useCollections(classes)
  const names = [...classes.rows.values()].map(({ name }) => name).sort()
  const defaultName = [...classes.rows.values()].find(({ isDefault }) => isDefault)?.name ?? names[0] ?? ''
  const className = useSignal('')
  const size = useSignal('10Gi')
  const count = useSignal('3')
  const result = useSignal<SimulationResult | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const isRunning = useSignal(false)
  const run = async (event: Event) => {
    event.preventDefault()
    const parsed = readSize(size.value)
    const number = Number(count.value)
    problem.value =
      'problem' in parsed
        ? parsed.problem
        : Number.isInteger(number) && number >= 1 && number <= COUNT_MAX
          ? undefined
          : `The number of claims must be between 1 and ${COUNT_MAX}.`
    if (problem.value !== undefined || 'problem' in parsed) return
    const body: SimulateRequest = { className: className.value || defaultName, size: parsed.size, count: number }
    isRunning.value = true
    try {
      result.value = await request<SimulationResult>('/data/simulate', { method: 'POST', body })
    } catch (error) {
      result.value = undefined
      problem.value = messageOf(error)
    } finally {
      isRunning.value = false
    }
  }
  return (
    <Panel title="What would fit" note="simulated, nothing is created">
      <form class="form-row" onSubmit={(event) => void run(event)}>
        <label class="field">
          <span>Claims</span>
          <input
            class="input"
            type="number"
            min={1}
            max={COUNT_MAX}
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
        <label class="field">
          <span>Class</span>
          <select
            class="input"
            value={className.value || defaultName}
            onChange={({ currentTarget }) => {
              className.value = currentTarget.value
            }}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="button button-primary" disabled={isRunning.value || names.length === 0}>
          {isRunning.value ? 'Simulating…' : 'Simulate'}
        </button>
      </form>
      <div aria-live="polite">
        {problem.value !== undefined && <p class="input-problem">{problem.value}</p>}
        {result.value && <Result result={result.value} />}
      </div>
    </Panel>
  )
}

function Result({ result: { fits, placed, rejected, notes } }: { readonly result: SimulationResult }) {
  const nodes = new Map<string, number>()
  for (const { node } of placed) nodes.set(node, (nodes.get(node) ?? 0) + 1)
  const diagnoses = rejected.flatMap(({ diagnosis }) => diagnosis ?? []).slice(0, REASONS_MAX)
  return (
    <div class="stack-lines">
      <p class={`status tone-${fits ? 'ok' : 'bad'}`}>
        <StatusIcon tone={fits ? 'ok' : 'bad'} />
        {fits
          ? `Everything fits: ${pluralize(placed.length, 'pod')} placed.`
          : `${pluralize(placed.length, 'pod')} placed, ${rejected.length} not.`}
      </p>
      {nodes.size > 0 && (
        <ul class="chips">
          {[...nodes].map(([node, pods]) => (
            <li key={node} class="tag">
              {node} <span class="muted">{pods}</span>
            </li>
          ))}
        </ul>
      )}
      {diagnoses.map((diagnosis) => (
        <WhyTree key={diagnosis.subject.name} diagnosis={diagnosis} hasFixes={false} />
      ))}
      {notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
    </div>
  )
}
