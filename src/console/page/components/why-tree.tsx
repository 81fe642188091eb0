// Shows the tree of causes from `stowage why`, with the fixes below each cause.
import type { Diagnosis, DiagnosisState } from '../../protocol.ts'
import type { Tone } from '../logic/claim-status.ts'
import { shortRef } from '../logic/kinds.ts'
import { Command } from './command.tsx'
import { StatusIcon } from './status.tsx'

const TONE_OF_STATE: Readonly<Record<DiagnosisState, Tone>> = {
  ready: 'ok',
  waiting: 'busy',
  failed: 'bad',
  unknown: 'warn',
}

/** The maximum number of shown children of a cause. A pod has a child for each node. */
const CHILDREN_MAX = 20

interface WhyTreeProps {
  readonly diagnosis: Diagnosis
  /** Whether to show the fixes. Their commands make no sense for simulated objects. */
  readonly hasFixes?: boolean
}

export const WhyTree = ({ diagnosis, hasFixes = true }: WhyTreeProps) => (
  <ul class="tree">
    <Cause diagnosis={diagnosis} hasFixes={hasFixes} />
  </ul>
)

/** Consecutive causes, such as nodes, often have the same fixes, which are shown once after the last of them. */
const withoutRepeatedFixes = (causes: readonly Diagnosis[]): Diagnosis[] =>
  causes.map((cause, index) =>
    JSON.stringify(cause.fixes) === JSON.stringify(causes[index + 1]?.fixes) ? { ...cause, fixes: [] } : cause,
  )

function Cause({ diagnosis, hasFixes }: Required<WhyTreeProps>) {
  const { subject, state, reason, message, fixes = [], children = [] } = diagnosis
  const omitted = children.length - CHILDREN_MAX
  return (
    <li>
      <div class="cause-line">
        <StatusIcon tone={TONE_OF_STATE[state]} />
        <span class="cause-text">
          <span class="sr-only">{state}: </span>
          <strong>{shortRef(subject.kind, subject.name)}</strong> {message} <span class="cause-reason">{reason}</span>
        </span>
      </div>
      {hasFixes && fixes.length > 0 && (
        <ul class="fixes" aria-label="Fixes">
          {fixes.map((fix) => (
            <li key={fix.message} class="fix">
              <span>
                {fix.losesData && <strong class="tone-bad">Loses data. </strong>}
                {fix.message}
              </span>
              {fix.command !== undefined && <Command text={fix.command} />}
            </li>
          ))}
        </ul>
      )}
      {children.length > 0 && (
        <ul class="tree">
          {withoutRepeatedFixes(children.slice(0, CHILDREN_MAX)).map((child, index) => (
            <Cause key={`${index} ${child.subject.kind}/${child.subject.name}`} diagnosis={child} hasFixes={hasFixes} />
          ))}
          {omitted > 0 && <li class="muted">… and {omitted} more</li>}
        </ul>
      )}
    </li>
  )
}
