// One run: a fresh server, a seeded generator, and a number of requests. Reports failures in a form that replays.
import type { Kind } from '../../src/api/kind.ts'
import type { ApiResponse } from '../../src/apiserver/index.ts'
import { createDice } from './dice.ts'
import { createGenerator, type FuzzRequest } from './generate.ts'
import { createWorld } from './world.ts'

const COMPARE_EVERY = 2_500
const FAILURES_SHOWN_MAX = 15

export interface Run {
  readonly seed: number
  readonly requests: number
  /** Default: the kinds as served. */
  readonly kinds?: readonly Kind[]
}

export interface RunResult {
  /** One example per kind of failure, with its request. */
  readonly failures: readonly string[]
  /** Paths of failing requests. */
  readonly failedPaths: ReadonlySet<string>
  /** Responses by the generator's intent and by status. */
  readonly statuses: Readonly<Record<string, Readonly<Record<number, number>>>>
  readonly accepted: number
}

export async function fuzz({ seed, requests, kinds }: Run): Promise<RunResult> {
  const world = await createWorld({ seed, kinds })
  const draw = createGenerator(createDice(seed))
  const failures = new Map<string, string>()
  const failedPaths = new Set<string>()
  const statuses: Record<string, Record<number, number>> = {}
  let accepted = 0
  for (let i = 0; i < requests; i++) {
    const request = draw(world.known)
    const { answer, wrong } = await world.send(request)
    const counts = statuses[request.about] ?? {}
    statuses[request.about] = { ...counts, [answer.status]: (counts[answer.status] ?? 0) + 1 }
    if (answer.status < 300) accepted++
    if (wrong.length > 0) failedPaths.add(request.path)
    for (const why of wrong) note(failures, why, describeCase({ seed, i, request, answer, why }))
    if (i % COMPARE_EVERY === 0) {
      for (const why of await world.compareAll()) note(failures, why, `seed ${seed}, after request ${i}: ${why}`)
    }
  }
  for (const why of await world.compareAll()) note(failures, why, `seed ${seed}, at the end: ${why}`)
  await world.close()
  return { failures: [...failures.values()], failedPaths, statuses, accepted }
}

/** Keeps one example per kind of failure. */
function note(failures: Map<string, string>, why: string, text: string): void {
  const signature = why
    .split('\n', 1)[0]!
    .replace(/"[^"]*"|\d+/g, '')
    .slice(0, 80)
  if (failures.size < FAILURES_SHOWN_MAX && !failures.has(signature)) failures.set(signature, text)
}

interface Case {
  readonly seed: number
  readonly i: number
  readonly request: FuzzRequest
  readonly answer: ApiResponse
  readonly why: string
}

function describeCase({ seed, i, request, answer, why }: Case): string {
  const { body, ...rest } = request
  const sent = Buffer.from(body ?? [])
  return [
    why,
    `  seed ${seed}, request ${i}: ${JSON.stringify(rest).slice(0, 1_000)}`,
    `  body (${sent.length} bytes): ${JSON.stringify(sent.toString('utf8').slice(0, 1_500))}`,
    `  answer ${answer.status}: ${Buffer.from(answer.body ?? [])
      .toString('utf8')
      .slice(0, 1_500)}`,
  ].join('\n')
}
