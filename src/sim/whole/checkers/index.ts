// The door of the checkers of the whole. They read the store and the drivers, never what a controller believes: some judge
// every commit and every driver call, some everything together once it is quiet, and one the metrics at the very end.
import type { Client } from '../../../client/index.ts'
import { checkBindings } from '../../checkers/bindings.ts'
import type { People } from '../people.ts'
import type { Stage } from '../stage.ts'
import type { View } from '../view.ts'
import { followClasses, judgeAttributes } from './attributes.ts'
import type { Court, Problem, Rule } from './court.ts'
import { judgeDeletions } from './deletions.ts'
import { createEyes } from './eyes.ts'
import { judgeIntents } from './intents.ts'
import { judgeLeases } from './leases.ts'
import { judgeWrites } from './lost-writes.ts'
import { gaugeProblems, metricProblems } from './metrics.ts'
import { judgeMounts } from './mounts.ts'
import { addObserver } from './observer.ts'
import { judgeOverlaps } from './overlaps.ts'
import { createPast } from './past.ts'
import { judgePlacements } from './placements.ts'
import { problemsOf } from './quiet.ts'
import { judgeQuotas } from './quota.ts'
import { followRetries } from './retries.ts'
import { judgeSizes } from './sizes.ts'
import { followTold } from './told.ts'

export interface CheckersOptions {
  readonly stage: Stage
  readonly view: View
  readonly people: Pick<People, 'acknowledged'>
  convict(rule: string, text: string): void
}

export interface Checkers {
  /** How each life of a process sees the server. */
  aroundClient(process: string, client: Client): Client
  /** What is wrong, now that it should be quiet. Looks only. */
  problems(): readonly { readonly rule: string; readonly text: string }[]
  /** It is quiet from now on: who is still busy is noted. */
  listen(): void
  /** Judges what can be judged only once everything has happened. */
  atEnd(): Promise<void>
}

/** Told at most this often of one rule: the first ones tell the story. */
const TOLD_MAX = 10

export function createCheckers({ stage, view, people, convict }: CheckersOptions): Checkers {
  const told = new Map<Rule, number>()
  const eyes = createEyes()
  const past = createPast(stage, view, eyes.isAskedToDelete)
  const court: Court = {
    stage,
    view,
    past,
    convict(rule, text) {
      const times = (told.get(rule) ?? 0) + 1
      told.set(rule, times)
      if (times <= TOLD_MAX) convict(rule, text)
    },
  }
  const deletions = judgeDeletions(court)
  const classes = followClasses(view)
  const events = followTold(view)
  const retries = followRetries()
  checkBindings(view.store, (crime) => court.convict('two claims', crime))
  judgeIntents(court)
  judgeSizes(court)
  judgeAttributes(court, classes)
  judgeQuotas(court)
  judgeOverlaps(court)
  judgeLeases(court)
  judgeMounts(court)
  judgePlacements(court)
  const writes = judgeWrites(court, people.acknowledged)
  addObserver(court)

  return {
    aroundClient: (process, client) =>
      retries.aroundClient(process, deletions.aroundClient(process, eyes.aroundClient(process, client))),
    problems(): readonly Problem[] {
      past.look()
      return problemsOf({ stage, view, past, classes, told: events })
    },
    listen: () => retries.listen(),
    async atEnd() {
      writes.look()
      for (const { rule, text } of retries.problems()) court.convict(rule, text)
      for (const { rule, text } of await metricProblems(stage)) court.convict(rule, text)
      for (const { rule, text } of await gaugeProblems(stage, view)) court.convict(rule, text)
    },
  }
}
