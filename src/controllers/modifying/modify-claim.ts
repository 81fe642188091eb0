// Moves one claim and its volume closer to the attributes that are wanted: reads, plans, applies, until nothing is left
// that can be done now. Safe at any moment: before the driver is asked, the claim says so and how to go back (undo.ts).
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import { askDriver } from './ask-driver.ts'
import type { ModifyingContext } from './context.ts'
import { canceled, modifyFailed } from './events.ts'
import { type Plan, planModification } from './plan-modification.ts'
import { type Situation, situationOf } from './situation.ts'
import { dropPatch, holdPatch, refusePatch, type StatusPatch } from './status-patches.ts'
import { afterWrite, READ_AGAIN_MS, type Step, tell } from './step.ts'
import { writeStatus } from './writing.ts'

/** A change that is finished, a way back, and another change: more in one go would keep other claims waiting. */
const STEPS_MAX = 4

export async function modifyClaim(first: Subject, context: ModifyingContext, signal: AbortSignal): Promise<Outcome> {
  let subject = first
  for (let step = 0; step < STEPS_MAX; step++) {
    const situation = await situationOf(subject, context)
    const outcome = await apply(planModification(situation), { situation, subject, context, signal })
    if (outcome.is !== 'changed') return outcome
    subject = outcome.subject
  }
  return retryAfter(READ_AGAIN_MS, 'more is due')
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
    case 'ask':
      return askDriver(plan, situation, subject, context, signal)
    case 'rest':
      return retryAfter(context.answers.restMs(claim), plan.because)
    case 'wait':
      return backOff(plan.because)
    case 'drop': {
      const written = await writeStatus(subject, dropPatch(claim, situation), context)
      if (written.is !== 'written') return afterWrite(written)
      context.answers.final(claim)
      tell(subject, canceled, context)
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

/** Told once: when the status comes to say it, or when the reason is another one than before. */
async function explain(patch: StatusPatch | undefined, because: string, { subject, context }: Work): Promise<Outcome> {
  if (patch) {
    const written = await writeStatus(subject, patch, context)
    if (written.is !== 'written') return afterWrite(written)
  }
  const { answers } = context
  const told = answers.told(subject.claim)
  if (patch || (told !== undefined && told !== because)) tell(subject, modifyFailed(because), context)
  answers.tell(subject.claim, because)
  return stuck(because)
}
