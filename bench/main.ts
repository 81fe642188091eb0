// `npm run bench [-- SUITE…]`: runs the suites and prints each figure beside its limit from the same run.
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { measureApi } from './api.ts'
import { measureClients } from './clients.ts'
import { measureDriver } from './driver.ts'
import { measureExpansion } from './expansion.ts'
import { runBurst } from './lib/burst-role.ts'
import { runClient } from './lib/client-role.ts'
import { runEcho } from './lib/echo-role.ts'
import { runEtcd } from './lib/etcd-role.ts'
import { type Figure, passes, ratioOf } from './lib/figure.ts'
import { runLoad } from './lib/load-role.ts'
import { servePools } from './lib/pools-role.ts'
import { ROLE_ARGUMENT, type RunJob, serveRole } from './lib/role.ts'
import type { Suite } from './lib/suite.ts'
import { tableOf } from './lib/table.ts'
import { measureModify } from './modify.ts'
import { measurePods } from './pods.ts'
import { measureProvisioning } from './provisioning.ts'
import { measureQuota } from './quota.ts'
import { measureScheduler } from './scheduler.ts'

const SUITES: Readonly<Record<string, Suite>> = {
  api: measureApi,
  clients: measureClients,
  provisioning: measureProvisioning,
  scheduler: measureScheduler,
  driver: measureDriver,
  pods: measurePods,
  quota: measureQuota,
  expansion: measureExpansion,
  modify: measureModify,
}
const ROLES: Readonly<Record<string, RunJob>> = {
  load: runLoad,
  echo: runEcho,
  client: runClient,
  etcd: runEtcd,
  burst: runBurst,
  pools: servePools,
}

const USAGE = `Usage: npm run bench -- [SUITE…] [flags]

Suites: ${Object.keys(SUITES).join(', ')} (default: all)

  --json FILE     write the figures as JSON too
  --only PARTS    parts of a suite, by comma; api has creates, reads, watches, starts; clients has
                  writes, events, memory, etcd; provisioning has binding, inProcess, alone, memory;
                  scheduler has decisions, pods, tracking;
                  driver has one, many; pods has loop, directory;
                  modify has thousand, tenThousand, creates, stress
  --dir DIR       make scratch directories there, to measure that disk
  --profile DIR   leave CPU profiles of the measured processes there
  --help          this text
`

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      only: { type: 'string' },
      dir: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  const names = positionals.length > 0 ? positionals : Object.keys(SUITES)
  const unknown = names.find((name) => !SUITES[name])
  if (values.help || unknown !== undefined) {
    process.stderr.write(unknown === undefined ? USAGE : `There is no suite "${unknown}".\n\n${USAGE}`)
    return unknown === undefined ? 0 : 2
  }

  const results: SuiteResult[] = []
  for (const suite of names) {
    const notes: string[] = []
    const figures = await SUITES[suite]!({
      parts: values.only?.split(',') ?? [],
      dir: values.dir,
      profileDir: values.profile,
      progress: (text) => void process.stderr.write(`${suite}: ${text}\n`),
      note: (text) => void notes.push(text),
    })
    results.push({ suite, figures, notes })
    process.stdout.write(`\n${suite}\n\n${tableOf(figures)}\n`)
    for (const note of notes) process.stdout.write(`${note}\n`)
  }
  if (values.json) await writeFile(values.json, `${JSON.stringify(results.map(asJson), null, 2)}\n`)
  return results.some(({ figures }) => figures.some((figure) => passes(figure) === false)) ? 1 : 0
}

interface SuiteResult {
  readonly suite: string
  readonly figures: readonly Figure[]
  readonly notes: readonly string[]
}

const asJson = ({ suite, figures, notes }: SuiteResult) => ({
  suite,
  notes,
  figures: figures.map((figure) => ({ ...figure, ratio: ratioOf(figure), pass: passes(figure) })),
})

const role = process.argv[2] === ROLE_ARGUMENT ? ROLES[process.argv[3] ?? ''] : undefined
if (role) serveRole(role)
else process.exitCode = await main()
