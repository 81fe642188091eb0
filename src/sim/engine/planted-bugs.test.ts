// Plants a bug at an interface of the system and shows that a workload reaches it and a checker reports it.
// docs/explanation/simulation.md lists bugs that were planted in the code.
import { describe, expect, it } from 'vitest'
import { CsiError } from '../../csi/index.ts'
import { generatePlan } from '../workload/generate.ts'
import type { WorkloadName } from '../workload/workloads.ts'
import { type PlantedBug, runPlan } from './run.ts'

/** A driver's "already exists" counts as a transient error. */
const existingIsTransient: PlantedBug = {
  wrapDriver: (_env, driver) => ({
    ...driver,
    controller: {
      ...driver.controller,
      async createVolume(request, options) {
        try {
          return await driver.controller.createVolume(request, options)
        } catch (error) {
          if (!(error instanceof CsiError) || error.codeName !== 'ALREADY_EXISTS') throw error
          throw new CsiError('UNAVAILABLE', error.message)
        }
      },
    },
  }),
}

/** A watch starts only after its initial state has been read, so that events in between are lost. */
const lateWatch: PlantedBug = {
  wrapServer: (client, store) => ({
    ...client,
    async *watch(kind, request) {
      let startRevision = 0
      for await (const event of client.watch(kind, request)) {
        if (event.type !== 'bookmark' && Number(event.object.metadata.resourceVersion) <= startRevision) continue
        yield event
        if (event.type === 'bookmark' && event.endsInitialEvents) startRevision = store.revision
      }
    },
  }),
}

/** A queue does not notify the registry of a key that is done: its operation stays listed. */
const doneIsNotNoted: PlantedBug = {
  wrapOperations: (operations) => ({
    ...operations,
    follow(source) {
      const follower = operations.follow(source)
      return { ...follower, note: (key) => void (source.stateOf(key) && follower.note(key)) }
    },
  }),
}

/** A queue does not notify the registry of a key that waits for a change: its operation is missing, or remains as it was. */
const stuckIsNotNoted: PlantedBug = {
  wrapOperations: (operations) => ({
    ...operations,
    follow(source) {
      const follower = operations.follow(source)
      return { ...follower, note: (key) => void (source.stateOf(key)?.is !== 'stuck' && follower.note(key)) }
    },
  }),
}

const FIRST_SEED = 1_000
/** Any change of the number of watches changes what a seed does, and few seeds reach the late watch. */
const SEEDS_MAX = 60
const TIMEOUT_MS = 900_000

describe('a planted bug', { timeout: TIMEOUT_MS }, () => {
  it('SYS-14 is found by "needless wait" if "already exists" counts as transient', async () => {
    expect(await findViolations('placement', existingIsTransient)).toContain('needless wait')
  })

  it('SYS-14 is found by "watch" if a watch starts after its initial state', async () => {
    expect(await findViolations('cache', lateWatch)).toContain('watch')
  })

  it('PLUS-15 is found by "stale operation" if the registry does not learn that a key is done', async () => {
    expect(await findViolations('provisioning', doneIsNotNoted)).toContain('stale operation')
  })

  it('PLUS-15 is found by "no operation" if the registry does not learn that a key is stuck', async () => {
    expect(await findViolations('provisioning', stuckIsNotNoted)).toContain('no operation')
  })
})

/** Returns the rules that the first seed with a violation violates. */
async function findViolations(workload: WorkloadName, plantedBug: PlantedBug): Promise<string[]> {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS_MAX; seed++) {
    const { violations } = await runPlan(generatePlan(seed, { workload }), plantedBug)
    if (violations.length > 0) return violations.map(({ rule }) => rule)
  }
  return []
}
