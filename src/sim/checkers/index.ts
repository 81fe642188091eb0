// Creates the checkers of a run. Some check every commit and every driver call, some the whole state at rest (at-rest/), some
// only the end of the run.
import type { Client } from '../../client/index.ts'
import type { System } from '../engine/system.ts'
import type { Users } from '../engine/users.ts'
import type { View } from '../engine/view.ts'
import { findProblems } from './at-rest/index.ts'
import { checkAttributes, followClasses, followExpectedAttributes } from './attributes.ts'
import { checkBindings } from './bindings.ts'
import { addCacheFollower } from './cache-follower.ts'
import type { CheckContext, Problem, Rule } from './context.ts'
import { createDeletionRequests } from './deletion-requests.ts'
import { checkDeletions } from './deletions.ts'
import { createExemptions } from './exemptions.ts'
import { checkGrowth, findGrowthProblems } from './growth.ts'
import { checkIntents } from './intents.ts'
import { checkLeases } from './leases.ts'
import { followLostVolumes } from './lost-nodes/lost-volumes.ts'
import { checkWriters, followStaleMounts } from './lost-nodes/writers.ts'
import { checkLostWrites } from './lost-writes.ts'
import { findGaugeProblems, findMetricProblems, findReservationProblems } from './metrics.ts'
import { checkMounts } from './mounts.ts'
import { findOperationProblems, followOperations } from './operations.ts'
import { checkOverlaps } from './overlaps.ts'
import { checkPlacements } from './placements.ts'
import { checkPreemptions } from './preemptions.ts'
import { checkQuotas } from './quotas.ts'
import { followEvents } from './recorded-events.ts'
import { followRetries } from './retries.ts'
import { checkSizes } from './sizes.ts'
import { checkStatefulSets } from './stateful-sets.ts'
import { addObserver } from './watch-observer.ts'

export interface CheckersOptions {
  readonly system: System
  readonly view: View
  readonly users: Pick<Users, 'acknowledgedWrites'>
  /** Whether a process watches over the network, to check watches. Default true. */
  readonly hasObserver?: boolean
  /** Whether the processes register their operations. Default true. */
  readonly hasOperations?: boolean
  report(rule: string, text: string): void
}

export interface Checkers {
  /** Wraps the client of each incarnation of a process. */
  wrapClient(process: string, client: Client): Client
  /** Returns the violations in the current state. The system must be at rest. */
  problems(): readonly Problem[]
  /** Counts rejected writes from now on: at rest there should be few. */
  watchRetries(): void
  /** Runs the checks that are possible only at the end of a run. */
  checkEnd(): Promise<void>
}

/** Violations of one rule that are reported: later ones mostly follow from the first. */
const REPORTED_MAX = 10

export function createCheckers(options: CheckersOptions): Checkers {
  const { system, view, users, hasObserver = true, hasOperations = true } = options
  const reportedCounts = new Map<Rule, number>()
  const deletionRequests = createDeletionRequests()
  const reportLimited = (rule: Rule, text: string): void => {
    const count = (reportedCounts.get(rule) ?? 0) + 1
    reportedCounts.set(rule, count)
    if (count <= REPORTED_MAX) options.report(rule, text)
  }
  const lostVolumes = followLostVolumes({ system, view, report: reportLimited })
  const exemptions = createExemptions(system, view, deletionRequests.includes, lostVolumes.isDropped)
  const context: CheckContext = {
    system,
    view,
    exemptions,
    report: reportLimited,
  }
  const deletions = checkDeletions(context)
  const classes = followClasses(view)
  const expectedAttributes = followExpectedAttributes(context, classes)
  const events = followEvents(view)
  const retries = followRetries()
  checkBindings(view.claimsAndVolumes, (text) => context.report('double binding', text))
  checkIntents(context)
  checkSizes(context)
  checkAttributes(context, classes)
  checkQuotas(context)
  if (system.setup.autoGrow) checkGrowth(context)
  checkOverlaps(context)
  checkLeases(context)
  const isStale = followStaleMounts(system, view)
  checkMounts(context, isStale)
  const writers = checkWriters(context, isStale)
  checkPlacements(context)
  checkStatefulSets(context)
  checkPreemptions(context)
  followOperations(system, view)
  const lostWrites = checkLostWrites(context, users.acknowledgedWrites)
  if (hasObserver) addObserver(context)
  const findCacheProblems = addCacheFollower(context)

  return {
    wrapClient: (process, client) =>
      [retries, deletions, deletionRequests, lostVolumes].reduceRight(
        (wrapped, observer) => observer.wrapClient(process, wrapped),
        client,
      ),
    problems() {
      exemptions.update()
      return [
        ...findProblems({ system, view, exemptions, classes, expectedAttributes, events }),
        ...findCacheProblems(),
        ...lostVolumes.problems(),
        ...(hasOperations ? findOperationProblems(system, view, exemptions) : []),
        ...(system.setup.autoGrow ? findGrowthProblems(view) : []),
      ]
    },
    watchRetries: () => retries.start(),
    async checkEnd() {
      lostWrites.check()
      writers.check()
      const problems: readonly Problem[] = [
        ...retries.problems(),
        ...(await findMetricProblems(system)),
        ...(await findGaugeProblems(system, view)),
        ...(await findReservationProblems(system, view)),
      ]
      for (const { rule, text } of problems) context.report(rule, text)
    },
  }
}
