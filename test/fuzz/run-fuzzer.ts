// Runs the fuzzer: sends generated requests to a new server and collects failures, each with the seed that replays it.
import type { Kind } from '../../src/api/kind.ts'
import type { ApiResponse } from '../../src/apiserver/index.ts'
import { createDice } from './dice.ts'
import { createGenerator, type FuzzRequest } from './generate-requests.ts'
import { createFuzzHarness } from './harness.ts'

const COMPARE_EVERY = 2_500
const FAILURES_SHOWN_MAX = 15

export interface FuzzOptions {
  readonly seed: number
  readonly requests: number
  /** Default: all served kinds. */
  readonly kinds?: readonly Kind[]
}

export interface FuzzResult {
  /** The first failure of each sort, up to a maximum number. */
  readonly failures: readonly string[]
  /** Paths of failing requests. */
  readonly failedPaths: ReadonlySet<string>
  /** Number of responses by intent of the generator and by status. */
  readonly statuses: Readonly<Record<string, Readonly<Record<number, number>>>>
  readonly accepted: number
}

export async function fuzz({ seed, requests, kinds }: FuzzOptions): Promise<FuzzResult> {
  const harness = await createFuzzHarness({ seed, kinds })
  const generate = createGenerator(createDice(seed))
  const failures = new Map<string, string>()
  const failedPaths = new Set<string>()
  const statuses: Record<string, Record<number, number>> = {}
  let accepted = 0
  for (let i = 0; i < requests; i++) {
    const request = generate(harness.state)
    const { response, problems } = await harness.send(request)
    const counts = statuses[request.intent] ?? {}
    statuses[request.intent] = { ...counts, [response.status]: (counts[response.status] ?? 0) + 1 }
    if (response.status < 300) accepted++
    if (problems.length > 0) failedPaths.add(request.path)
    for (const problem of problems)
      recordFailure(failures, problem, describeCase({ seed, i, request, response, problem }))
    if (i % COMPARE_EVERY === 0) {
      for (const problem of await harness.compareAll())
        recordFailure(failures, problem, `seed ${seed}, after request ${i}: ${problem}`)
    }
  }
  for (const problem of await harness.compareAll())
    recordFailure(failures, problem, `seed ${seed}, at the end: ${problem}`)
  await harness.close()
  return { failures: [...failures.values()], failedPaths, statuses, accepted }
}

/** Records the first failure of each sort. */
function recordFailure(failures: Map<string, string>, problem: string, text: string): void {
  const signature = problem
    .split('\n', 1)[0]!
    .replace(/"[^"]*"|\d+/g, '')
    .slice(0, 80)
  if (failures.size < FAILURES_SHOWN_MAX && !failures.has(signature)) failures.set(signature, text)
}

interface FailedCase {
  readonly seed: number
  readonly i: number
  readonly request: FuzzRequest
  readonly response: ApiResponse
  readonly problem: string
}

function describeCase({ seed, i, request, response, problem }: FailedCase): string {
  const { body, ...requestFields } = request
  const bodyBytes = Buffer.from(body ?? [])
  return [
    problem,
    `  seed ${seed}, request ${i}: ${JSON.stringify(requestFields).slice(0, 1_000)}`,
    `  body (${bodyBytes.length} bytes): ${JSON.stringify(bodyBytes.toString('utf8').slice(0, 1_500))}`,
    `  response ${response.status}: ${Buffer.from(response.body ?? [])
      .toString('utf8')
      .slice(0, 1_500)}`,
  ].join('\n')
}
