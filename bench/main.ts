// `npm run bench [-- SUITE…]`: runs the suites and prints one table of all figures.
// Saves the figures as JSON and, on request, writes them to the docs, records CPU profiles, or compares two builds.
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { cpus, release, tmpdir, type } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { accessSuite } from './access.ts'
import { apiSuite } from './api.ts'
import { clientsSuite } from './clients.ts'
import { consoleSuite } from './console.ts'
import { driverSuite } from './driver.ts'
import { expansionSuite } from './expansion.ts'
import { runAttack } from './lib/attack-role.ts'
import { buildCommit, UnknownCommitError } from './lib/build-commit.ts'
import { runBurst } from './lib/burst-role.ts'
import { runChurn } from './lib/churn-role.ts'
import { runClient } from './lib/client-role.ts'
import { writeDocs } from './lib/docs.ts'
import { runEcho } from './lib/echo-role.ts'
import { runEtcd } from './lib/etcd-role.ts'
import { runJournal } from './lib/journal-role.ts'
import { runLoad } from './lib/load-role.ts'
import { servePools } from './lib/pools-role.ts'
import { writeFlameGraphs } from './lib/profiles.ts'
import { type Report, reportJson, secondsOf, targetsOf } from './lib/report.ts'
import { ROLE_ARGUMENT, type RunJob, serveRole } from './lib/role.ts'
import { runAgainst } from './lib/run-against.ts'
import { runSuites } from './lib/run-suites.ts'
import type { OtherBuild, Suite } from './lib/suite.ts'
import { formatTables } from './lib/table.ts'
import { minutesText } from './lib/text.ts'
import { modifySuite } from './modify.ts'
import { overloadSuite } from './overload.ts'
import { podsSuite } from './pods.ts'
import { processorSuite } from './processor.ts'
import { provisioningSuite } from './provisioning.ts'
import { quotaSuite } from './quota.ts'
import { scaleSuite } from './scale.ts'
import { schedulerSuite } from './scheduler.ts'
import { sidecarSuite } from './sidecar.ts'
import { soakSuite } from './soak.ts'

const SUITES: Readonly<Record<string, Suite>> = {
  api: apiSuite,
  access: accessSuite,
  clients: clientsSuite,
  provisioning: provisioningSuite,
  scheduler: schedulerSuite,
  driver: driverSuite,
  pods: podsSuite,
  quota: quotaSuite,
  expansion: expansionSuite,
  modify: modifySuite,
  overload: overloadSuite,
  sidecar: sidecarSuite,
  soak: soakSuite,
  console: consoleSuite,
  processor: processorSuite,
  scale: scaleSuite,
}
const ROLES: Readonly<Record<string, RunJob>> = {
  load: runLoad,
  echo: runEcho,
  client: runClient,
  etcd: runEtcd,
  burst: runBurst,
  journal: runJournal,
  pools: servePools,
  attack: runAttack,
  churn: runChurn,
}

/** For all suites together, unless --long is given. */
const BUDGET_SECONDS = 600
const PROGRAM_DIR = dirname(process.argv[1]!)
const RESULTS = join(PROGRAM_DIR, 'bench-results.json')
const DOCS = join(PROGRAM_DIR, '..', 'docs', 'reference')

const partsText = Object.entries(SUITES).map(
  ([name, { parts }]) => `  ${name.padEnd(14)}${Object.keys(parts).join(', ')}`,
)
const USAGE = `Usage: npm run bench -- [SUITE…] [flags]

Suites (default: all but overload, sidecar, soak, console, processor and scale, in less than ten minutes) and their parts:

${partsText.join('\n')}

  --only PARTS    run only these parts of the suites (comma-separated)
  --long          run more, longer and larger rounds, without a time limit
  --json FILE     write the figures to FILE (default dist/bench-results.json)
  --write-docs    write the figures and a chart per suite to docs/reference/performance.md
  --profile DIR   write CPU profiles of the measured processes and flame graphs to DIR (see DIR/index.html);
                  profiling slows everything down, so do not use the figures
  --against COMMIT
                  build COMMIT beside this build, run the suites on both alternately, and print the ratio of each figure;
                  the suite processor runs once, with servers of both builds
  --beside DIR    compare with another build, whose directory dist is DIR (suite processor only)
  --rounds N      rounds of each build with --against (default 3)
  --dir DIR       create scratch directories in DIR, to measure its disk
  --help          show this help
`

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'string', default: RESULTS },
      only: { type: 'string' },
      dir: { type: 'string' },
      profile: { type: 'string' },
      against: { type: 'string' },
      beside: { type: 'string' },
      rounds: { type: 'string', default: '3' },
      long: { type: 'boolean', default: false },
      'write-docs': { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  })
  if (values.help) {
    process.stderr.write(USAGE)
    return 0
  }
  const defaults = Object.keys(SUITES).filter((name) => !SUITES[name]!.isOptional)
  const names = positionals.length > 0 ? positionals : defaults
  const only = values.only?.split(',') ?? []
  const problem = findProblem(names, only)
  if (problem) {
    process.stderr.write(`${problem}\n\n${USAGE}`)
    return 2
  }

  const log = (line: string) => void process.stderr.write(`${line}\n`)
  const allCompareInOneRun = names.every((name) => SUITES[name]!.comparesInOneRun)
  if (values.against !== undefined && !allCompareInOneRun) {
    const { only: parts, dir, long: isLong } = values
    const flags = [...(parts ? ['--only', parts] : []), ...(dir ? ['--dir', dir] : []), ...(isLong ? ['--long'] : [])]
    return compareWithCommit(values.against, {
      rounds: values.rounds,
      args: [...names, ...flags],
      jsonFile: values.json,
      log,
    })
  }
  const startMs = performance.now()
  const run = (beside?: OtherBuild) =>
    runSuites({
      suites: Object.fromEntries(names.map((name) => [name, SUITES[name]!])),
      only,
      dir: values.dir,
      profileDir: values.profile,
      isLong: values.long,
      beside,
      budgetSeconds: values.long ? undefined : BUDGET_SECONDS,
      nowMs: () => performance.now(),
      log,
    })
  const { suites, hasFailed } =
    values.against !== undefined
      ? await withBuiltCommit(values.against, run, log)
      : await run(values.beside === undefined ? undefined : { name: values.beside, programs: resolve(values.beside) })
  const report: Report = { machine: thisMachine(), seconds: (performance.now() - startMs) / 1000, suites }
  process.stdout.write(`\n${formatReport(report)}`)
  await mkdir(dirname(values.json), { recursive: true })
  await writeFile(values.json, reportJson(report))
  log(`Figures written to ${values.json}.`)
  if (values.profile) log(`Open ${await writeFlameGraphs(values.profile)} in a browser.`)
  if (values['write-docs']) for (const path of await writeDocs(DOCS, report, Object.keys(SUITES))) log(`Wrote ${path}.`)
  const { met, all } = targetsOf(suites)
  return hasFailed || met < all ? 1 : 0
}

async function withBuiltCommit<T>(
  commit: string,
  run: (beside: OtherBuild) => Promise<T>,
  log: (line: string) => void,
): Promise<T> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-bench-beside-')))
  try {
    log(`Building ${commit}`)
    const { hash, program } = await buildCommit(commit, { root: join(PROGRAM_DIR, '..'), dir })
    return await run({ name: hash.slice(0, 12), programs: dirname(program) })
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function compareWithCommit(
  commit: string,
  options: { rounds: string; args: readonly string[]; jsonFile: string; log: (line: string) => void },
): Promise<number> {
  const { rounds, args, jsonFile, log } = options
  if (!/^[1-9]\d*$/.test(rounds)) {
    log(`--rounds ${rounds}: expected a whole number, 1 or more`)
    return 2
  }
  const program = process.argv[1]!
  const root = join(PROGRAM_DIR, '..')
  const { text, figures } = await runAgainst({ commit, rounds: Number(rounds), args, root, program, log })
  process.stdout.write(`\n${text}`)
  await writeFile(jsonFile, `${JSON.stringify(figures, null, 2)}\n`)
  log(`Ratios written to ${jsonFile}.`)
  return 0
}

function findProblem(names: readonly string[], only: readonly string[]): string | undefined {
  const unknownSuite = names.find((name) => !SUITES[name])
  if (unknownSuite !== undefined) return `There is no suite "${unknownSuite}".`
  const missingPart = only.find((part) => !names.some((name) => SUITES[name]?.parts[part]))
  return missingPart === undefined ? undefined : `None of the suites ${names.join(', ')} has a part "${missingPart}".`
}

function formatReport({ suites, seconds }: Report): string {
  const { met, all } = targetsOf(suites)
  const noteLines = suites.flatMap(({ suite, notes }) => [...new Set(notes)].map((note) => `${suite}: ${note}\n`))
  const times = suites.map((suite) => `${suite.suite} ${minutesText(secondsOf(suite))}`)
  return [
    formatTables(suites),
    noteLines.join(''),
    `${met} of ${all} targets met, in ${minutesText(seconds)} (${times.join(', ')}).\n`,
  ].join('\n')
}

function reportUnknownCommit(error: unknown): number {
  if (!(error instanceof UnknownCommitError)) throw error
  process.stderr.write(`${error.message}\n`)
  return 2
}

const thisMachine = (): Report['machine'] => ({
  cores: cpus().length,
  processor: cpus()[0]?.model ?? 'unknown',
  node: process.version,
  system: `${type()} ${release()}`,
})

const role = process.argv[2] === ROLE_ARGUMENT ? ROLES[process.argv[3] ?? ''] : undefined
if (role) serveRole(role)
else process.exitCode = await main().catch(reportUnknownCommit)
