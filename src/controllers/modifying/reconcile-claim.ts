// Reconciles the attributes of one claim's volume: reads (situation.ts), plans (plan-modification.ts) and applies one step
// after the other, until nothing is left to do or a step has to wait. The process may crash at any point; the next reconcile
// plans from the stored claim and volume.
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { ModifyingContext } from './context.ts'
import { modifyFailed } from './events.ts'
import { dropModification, modifyVolume } from './modify-volume.ts'
import { type Plan, planModification } from './plan-modification.ts'
import { readSituation, type Situation } from './situation.ts'
import { holdPatch, rejectPatch, type StatusPatch } from './status-patches.ts'
import { outcomeOfWrite, RETRY_DELAY_MS, recordEvent, type Step } from './step.ts'
import { writeStatus } from './writes.ts'

/** Sufficient for a completed modification, a rollback and a new modification. After that the claim is requeued. */
const STEPS_MAX = 4

export async function reconcileClaim(
  initialSubject: Subject,
  context: ModifyingContext,
  signal: AbortSignal,
): Promise<Outcome> {
  let subject = initialSubject
  for (let step = 0; step < STEPS_MAX; step++) {
    const situation = await readSituation(subject, context)
    const outcome = await apply(planModification(situation), { situation, subject, context, signal })
    if (outcome.is !== 'changed') return outcome
    subject = outcome.subject
  }
  return retryAfter(RETRY_DELAY_MS, 'further steps are due')
}

interface ReconcileArgs {
  readonly situation: Situation
  readonly subject: Subject
  readonly context: ModifyingContext
  readonly signal: AbortSignal
}

async function apply(plan: Plan, args: ReconcileArgs): Promise<Step> {
  const { situation, subject, context, signal } = args
  const { claim } = subject
  switch (plan.do) {
    case 'nothing':
      return done
    case 'modify':
      return modifyVolume(plan, situation, subject, context, signal)
    case 'delay':
      return retryAfter(context.responses.retryDelayMs(claim), plan.message)
    case 'wait':
      return backOff(plan.message)
    case 'drop':
      return dropModification({ situation, subject, unrestoredAttributes: plan.unrestoredAttributes }, context)
    case 'hold': {
      const input = { claim, situation, target: plan.target, nowMs: context.clock.nowMs() }
      return reportReason(holdPatch(input, plan.message), plan.message, args)
    }
    case 'reject': {
      const input = { claim, situation, target: plan.target, nowMs: context.clock.nowMs() }
      return reportReason(rejectPatch(input, plan.io, plan.message), plan.message, args)
    }
  }
}

/** Records an event if the message differs from the last reported one, or after a restart if the status changes. */
async function reportReason(
  patch: StatusPatch | undefined,
  message: string,
  { subject, context }: ReconcileArgs,
): Promise<Outcome> {
  if (patch) {
    const result = await writeStatus(subject, patch, context.saver)
    if (result.is !== 'written') return outcomeOfWrite(result)
  }
  const { responses } = context
  const reportedMessage = responses.reportedMessageOf(subject.claim)
  const isNew = reportedMessage === undefined ? patch !== undefined : reportedMessage !== message
  if (isNew) recordEvent(subject, modifyFailed(message), context)
  responses.recordReportedMessage(subject.claim, message)
  return stuck(message)
}
