// Sends generated requests to the API, and checks the responses and the store with an independent validator. FUZZ_SEED
// replays a run, FUZZ_REQUESTS scales it; `npm run prove` sends 400,000.
import { describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../src/api/kinds/index.ts'
import { createDice } from './dice.ts'
import { createMutated } from './generate-requests.ts'
import { createFuzzHarness } from './harness.ts'
import { type FuzzResult, fuzz } from './run-fuzzer.ts'
import { SERVED } from './samples.ts'
import { VALIDATED_KINDS } from './validator/index.ts'

const SEED = Number(process.env.FUZZ_SEED ?? 20_260_101)
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 40_000)
/** Each run has a separate store. */
const RUNS = 4
const RUN_MS_MAX = 600_000
/** Mutated objects after which the validator must have reported one. */
const UNDETECTED_MAX = 5_000

const UNVALIDATED_KINDS = ALL_KINDS.map((kind) => ({
  ...kind,
  validate() {},
  validateUpdate() {},
  nameErrors: () => [],
}))

describe('API under generated requests', () => {
  for (let run = 0; run < RUNS; run++) {
    const seed = SEED + run
    const requests = Math.ceil(REQUESTS / RUNS)
    it(
      `SYS-10 validates ${requests} generated requests, and stores nothing for a rejected one except an ExceededQuota event (FUZZ_SEED=${seed})`,
      async () => {
        const result = await fuzz({ seed, requests })
        console.log(`seed ${seed}\n${formatTable(result)}`)
        expect(result.failures.join('\n\n')).toBe('')
        // Many requests must be accepted to reach the later checks.
        expect(result.accepted).toBeGreaterThan(requests / 10)
      },
      RUN_MS_MAX,
    )
  }

  it('the fuzzer generates and independently validates every stored kind', () => {
    const storedKinds = ALL_KINDS.filter(({ isReview, isForeign }) => !isReview && !isForeign)
    const servedKindNames = [...new Set(storedKinds.map(({ kind }) => kind))].sort()
    expect([...new Set(SERVED.map(({ kind }) => kind))].sort()).toEqual(servedKindNames)
    expect(VALIDATED_KINDS.toSorted()).toEqual(servedKindNames)
  })

  it.each(SERVED.map((served) => [`${served.kind} in ${served.apiVersions[0]}`, served] as const))(
    'the fuzzer reports an invalid %s if the server does not validate',
    async (_, served) => {
      const harness = await createFuzzHarness({ seed: SEED, kinds: UNVALIDATED_KINDS })
      const dice = createDice(SEED)
      let problems: string[] = []
      for (let i = 0; i < UNDETECTED_MAX && problems.length === 0; i++)
        problems = (await harness.send(createMutated(dice, served))).problems
      expect(problems).not.toEqual([])
      await harness.close()
    },
  )
})

const formatTable = ({ statuses, accepted }: FuzzResult): string =>
  [
    ...Object.entries(statuses).map(([intent, counts]) => {
      const cells = Object.entries(counts).map(([status, count]) => `${status}: ${count}`)
      return `  ${intent.padEnd(20)} ${cells.join('  ')}`
    }),
    `  accepted ${accepted}`,
  ].join('\n')
