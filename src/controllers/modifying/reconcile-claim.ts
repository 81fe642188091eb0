// Reconciles the attributes of one claim's volume: reads (situation.ts), plans (plan-modification.ts), applies one step,
// and plans again until nothing is due. Idempotent: before each call the claim records the intent and its undo (undo.ts).
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { ModifyingContext } from './context.ts'
import { canceled, modifyFailed } from './events.ts'
import { modifyVolume } from './modify-volume.ts'
import { type Plan, planModification } from './plan-modification.ts'
import { type Situation, situationOf } from './situation.ts'
import { dropPatch, holdPatch, refusePatch, type StatusPatch } from './status-patches.ts'
import { afterWrite, REREAD_MS, recordEvent, type Step } from './step.ts'
import { writeStatus } from './writes.ts'

/** Enough for a finished modification, a rollback and a new modification; further steps go back to the queue. */
const STEPS_MAX = 4

export async function reconcileClaim(first: Subject, context: ModifyingContext, signal: AbortSignal): Promise<Outcome> {
  let subject = first
  for (let step = 0; step < STEPS_MAX; step++) {
    const situation = await situationOf(subject, context)
    const outcome = await apply(planModification(situation), { situation, subject, context, signal })
    if (outcome.is !== 'changed') return outcome
    subject = outcome.subject
  }
  return retryAfter(REREAD_MS, 'further steps are due')
}

interface Work {
  readonly situation: Situation
  readonly subject: Subject
  readonly context: ModifyingContext
  readonly signal: AbortSignal
}

async function apply(plan: Plan, work: Work): Promise<Step> {
  const { situation, subject, context, signal } = work
  const { claim } = subject
  switch (plan.do) {
    case 'nothing':
      return done
    case 'modify':
      return modifyVolume(plan, situation, subject, context, signal)
    case 'delay':
      return retryAfter(context.responses.retryDelayMs(claim), plan.because)
    case 'wait':
      return backOff(plan.because)
    case 'drop': {
      const written = await writeStatus(subject, dropPatch(claim, situation), context.saver)
      if (written.is !== 'written') return afterWrite(written)
      context.responses.final(claim)
      recordEvent(subject, canceled, context)
      return { is: 'changed', subject: written.subject }
    }
    case 'hold':
      return explain(holdPatch(claim, situation, plan.target), plan.because, work)
    case 'refuse': {
      const step = { claim, situation, target: plan.target, nowMs: context.clock.nowMs() }
      return explain(refusePatch(step, plan.io, plan.because), plan.because, work)
    }
  }
}

/** Records an event once: when the status changes, or when the reason differs from the last reported one. */
async function explain(patch: StatusPatch | undefined, because: string, { subject, context }: Work): Promise<Outcome> {
  if (patch) {
    const written = await writeStatus(subject, patch, context.saver)
    if (written.is !== 'written') return afterWrite(written)
  }
  const { responses } = context
  const reported = responses.reported(subject.claim)
  if (patch || (reported !== undefined && reported !== because)) recordEvent(subject, modifyFailed(because), context)
  responses.report(subject.claim, because)
  return stuck(because)
}
