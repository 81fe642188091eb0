// Throws generated requests at the API and believes nothing: every answer is checked, every accepted object gets a
// second opinion, and a refused request must have changed nothing. FUZZ_SEED replays a run, FUZZ_REQUESTS scales it.
import { describe, expect, it } from 'vitest'
import { createDice } from './dice.ts'
import { createGenerator, type FuzzRequest } from './generate.ts'
import { createWorld } from './world.ts'

const SEED = Number(process.env.FUZZ_SEED ?? 20_260_101)
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 100_000)
/** Each run starts with an empty store, so that beginnings are tried too. */
const RUNS = 4
const COMPARE_EVERY = 2_500
const FAILURES_SHOWN_MAX = 15

describe('SYS-10 hostile requests', () => {
  for (let run = 0; run < RUNS; run++) {
    const seed = SEED + run
    const count = Math.ceil(REQUESTS / RUNS)
    it(`SYS-10 ${count} generated requests are answered precisely and change nothing they may not (FUZZ_SEED=${seed})`, async () => {
      const { failures, statuses, accepted } = await fuzz({ seed, count })
      console.log(`seed ${seed}\n${table(statuses)}`)
      expect(failures.join('\n\n'), 'see above for requests to replay').toBe('')
      // Without these the run would prove little: much must be accepted, and much refused.
      expect(accepted).toBeGreaterThan(count / 10)
      expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['create', 'odd patch', 'put', 'status', 'delete']))
    }, 300_000)
  }
})

async function fuzz({ seed, count }: { seed: number; count: number }) {
  const world = await createWorld(seed)
  const draw = createGenerator(createDice(seed))
  const failures = new Map<string, string>()
  const statuses: Record<string, Record<number, number>> = {}
  let accepted = 0
  for (let i = 0; i < count; i++) {
    const request = draw(world.known)
    const { answer, wrong } = await world.send(request)
    const counts = (statuses[request.about] ??= {})
    counts[answer.status] = (counts[answer.status] ?? 0) + 1
    if (answer.status < 300) accepted++
    if (i % COMPARE_EVERY === 0) wrong.push(...(await world.compareAll()))
    for (const why of wrong) {
      if (failures.size < FAILURES_SHOWN_MAX) note(failures, why, describeCase({ seed, i, request, answer, why }))
    }
  }
  for (const why of await world.compareAll()) note(failures, why, `seed ${seed}, at the end: ${why}`)
  await world.close()
  return { failures: [...failures.values()], statuses, accepted }
}

/** Of the same complaint one example is enough. */
function note(failures: Map<string, string>, why: string, text: string): void {
  const signature = why
    .split('\n', 1)[0]!
    .replace(/"[^"]*"|\d+/g, '')
    .slice(0, 80)
  if (!failures.has(signature)) failures.set(signature, text)
}

function describeCase(the: { seed: number; i: number; request: FuzzRequest; answer: any; why: string }): string {
  const { body, ...rest } = the.request
  const sent = Buffer.from(body ?? [])
  return [
    `${the.why}`,
    `  seed ${the.seed}, request ${the.i}: ${JSON.stringify(rest).slice(0, 1_000)}`,
    `  body (${sent.length} bytes): ${JSON.stringify(sent.toString('utf8').slice(0, 1_500))}`,
    `  answer ${the.answer.status}: ${Buffer.from(the.answer.body ?? [])
      .toString('utf8')
      .slice(0, 1_500)}`,
  ].join('\n')
}

const table = (statuses: Record<string, Record<number, number>>): string =>
  Object.entries(statuses)
    .map(
      ([about, counts]) =>
        `  ${about.padEnd(16)} ${Object.entries(counts)
          .map(([status, n]) => `${status}: ${n}`)
          .join('  ')}`,
    )
    .join('\n')
