// Reads and writes plan files: regressions (a plan, the rule that it violated, and a description of the bug) and bare plans.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Plan } from './plan.ts'

export interface Regression {
  /** The bug in one sentence. */
  readonly description: string
  readonly rule: string
  readonly plan: Plan
}

export async function readRegressions(dir: string): Promise<(Regression & { readonly file: string })[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [] // no regression was saved yet
    throw error
  })
  const files = names.filter((name) => name.endsWith('.json')).sort()
  return Promise.all(
    files.map(async (file) => {
      const savedContent = await readPlanFile(join(dir, file))
      return {
        file,
        description: savedContent.description ?? file,
        rule: savedContent.rule ?? '',
        plan: savedContent.plan,
      }
    }),
  )
}

/** Returns the path of the written file. */
export async function saveRegression(dir: string, { description, rule, plan }: Regression): Promise<string> {
  const path = join(dir, fileNameOf(rule, plan))
  await mkdir(dir, { recursive: true })
  await writeFile(path, `${JSON.stringify({ description, rule, plan }, null, 2)}\n`)
  return path
}

/** Returns a name such as `same-seed-same-run-7.json`. */
export const fileNameOf = (rule: string, { seed }: Plan): string =>
  `${rule.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase()}-${seed}.json`

/** Reads a regression or a bare plan. */
export async function readPlanFile(path: string): Promise<Partial<Regression> & { readonly plan: Plan }> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new PlanFileError(`Cannot read plan "${path}": ${error.message}. Give the path of a file that --save wrote.`)
  })
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch (error) {
    throw new PlanFileError(`Plan "${path}" is not JSON: ${(error as Error).message}. Save it again with --save.`)
  }
  const savedContent = isPlan(content) ? { plan: content } : (content as Partial<Regression>)
  if (!isPlan(savedContent?.plan))
    throw new PlanFileError(
      `"${path}" has no plan: expected seed, minutes, setup, faultRates and steps. See src/sim/regressions for examples.`,
    )
  return { ...savedContent, plan: savedContent.plan }
}

export class PlanFileError extends Error {}

function isPlan(content: unknown): content is Plan {
  const { seed, minutes, setup, faultRates, steps } = (content ?? {}) as Partial<Plan>
  return [seed, minutes].every(Number.isFinite) && Boolean(setup && faultRates) && Array.isArray(steps)
}
