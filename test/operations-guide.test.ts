// Compares docs/how-to/operations.md, its alert rules and the dashboard of the chart with the program: metrics, names, flags,
// commands and bounds.
import { mkdir, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createProgram, listCommandsBelow } from '../src/cli/program.ts'
import { capabilityOf, MIB } from '../src/driver/driver.fixture.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findMetricMentions, parseRules } from './helpers/alert-rules.ts'
import { parseDashboard, queriesOf } from './helpers/dashboard.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { type LocalDriver, startLocalDriver } from './helpers/local-driver.ts'
import { type Families, parseFamilies } from './helpers/metrics.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type RunningStowage, startStowage } from './helpers/stowage.ts'

const ROOT = new URL('..', import.meta.url).pathname
const readProjectFile = (path: string) => readFile(join(ROOT, path), 'utf8')
const GUIDE = await readProjectFile('docs/how-to/operations.md')
const RULES = parseRules(await readProjectFile('docs/how-to/alerts.yaml'))
const PANEL_QUERIES = queriesOf(parseDashboard(await readProjectFile('charts/stowage/files/dashboard.json')))
const QUERIES = [...RULES, ...PANEL_QUERIES]

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const DRIVER = 'local.csi.stowage.dev'
/** A directory cannot be limited, so the metric of limits is served only with loop devices. */
const hasLoops = skipReason(await probeThisMachine(), ['loop', 'mount']) === undefined

/** Labels of Prometheus itself. */
const PROMETHEUS_LABELS = new Set(['instance', 'job', 'le'])

const SCRAPES_END_MS = performance.now() + 100_000 // before the timeout of the hook, to report the missing metrics

describe('metrics in alerts, in the dashboard and in the guide', () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  let scheduler: RunningStowage
  let driver: LocalDriver
  const families: Families = new Map()

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-operations-')))
    await mkdir(join(dir, 'data'))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '1Gi'] })
    driver = await startLocalDriver({
      flags: ['--backend', hasLoops ? 'loop' : 'directory', '--metrics-address', '127.0.0.1:0'],
    })
    const port = await findFreePort()
    scheduler = await startStowage({
      args: ['scheduler', '--kubeconfig', server.kubeconfig, '--scheduler-names', 'nobody'].concat([
        '--http-endpoint',
        `127.0.0.1:${port}`,
      ]),
    })
    await provokeFailures()
    const scrape = async () => {
      parseFamilies((await server.call('GET', '/metrics')).text, families)
      for (const metricsPort of [port, driver.ready.metricsPort!]) {
        parseFamilies(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(), families)
      }
    }
    for (let missingNames = LABELLED_METRICS; missingNames.length > 0; ) {
      await scrape()
      missingNames = missingNames.filter((name) => !families.get(name)?.sampleCount)
      if (performance.now() > SCRAPES_END_MS) throw new Error(`no samples of: ${missingNames.join(', ')}`)
    }
  })
  afterAll(async () => {
    await scheduler?.stop()
    await server?.stop()
    await driver?.dispose()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  /** Triggers the metrics that have no samples in a healthy, idle system. */
  async function provokeFailures(): Promise<void> {
    const post = async (path: string, body: object) => {
      const { status, text } = await server.call('POST', path, body)
      expect([status, status === 201 ? '' : text]).toEqual([201, ''])
    }
    const spec = (fields: object) => ({
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '320Mi' } },
      ...fields,
    })
    await post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
      metadata: { name: 'odd' },
      driverName: DRIVER,
      parameters: { tier: 'gold' }, // not supported by the driver
    })
    await post(CLAIMS, { metadata: { name: 'data' }, spec: spec({}) })
    await post(CLAIMS, {
      metadata: { name: 'unsupported' },
      spec: spec({ storageClassName: 'directory', volumeMode: 'Block' }),
    })
    await post('/api/v1/namespaces/default/pods', {
      metadata: { name: 'user' },
      spec: {
        containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
    })
    await post('/api/v1/persistentvolumes', {
      metadata: { name: 'stray', annotations: { 'pv.kubernetes.io/provisioned-by': 'stowage.dev/directory' } },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'directory',
        hostPath: { path: '/nowhere' }, // not created by the provisioner
        claimRef: { namespace: 'default', name: 'deleted', uid: '00000000-0000-0000-0000-000000000001' },
      },
    })
    await post(CLAIMS, { metadata: { name: 'temporary' }, spec: spec({ storageClassName: 'directory' }) })
    const isBound = async (name: string) =>
      (await server.call('GET', `${CLAIMS}/${name}`)).json.status.phase === 'Bound'
    await pollUntil(() => isBound('temporary'))
    await server.call('DELETE', `${CLAIMS}/temporary`)
    await pollUntil(() => isBound('data'))
    const merge = { 'content-type': 'application/merge-patch+json' }
    await server.call('PATCH', `${CLAIMS}/data`, { spec: { volumeAttributesClassName: 'odd' } }, merge)

    const volumeCapability = capabilityOf({})
    const { volume } = await driver.csi.controller.createVolume({
      name: 'limited',
      capacityRange: { requiredBytes: BigInt(16 * MIB) },
      volumeCapabilities: [volumeCapability],
      parameters: hasLoops ? { iops: '100' } : {},
    })
    await mkdir(join(driver.dir, 'staging'))
    await driver.csi.node.nodeStageVolume({
      volumeId: volume!.volumeId,
      stagingTargetPath: join(driver.dir, 'staging'),
      volumeCapability,
    })
  }

  /** Metrics whose labels are checked. Labels are served only with a sample. */
  const LABELLED_METRICS = QUERIES.flatMap(findMetricMentions)
    .filter(({ metric, labels }) => metric !== 'up' && labels.some((label) => !PROMETHEUS_LABELS.has(label)))
    .map(({ metric }) => metric)
    .filter((metric) => hasLoops || metric !== 'stowage_driver_limit_enforced')

  it.each(QUERIES.map((rule) => [rule.alert, rule] as const))('SYS-17 of %s are served', (_, rule) => {
    const mentions = findMetricMentions(rule)
    expect(mentions).not.toEqual([])
    for (const { metric, labels, values } of mentions.filter(({ metric }) => metric !== 'up')) {
      const family = families.get(metric)
      expect(family, `no process serves ${metric}`).toBeDefined()
      const unknownLabels = labels.filter((label) => !PROMETHEUS_LABELS.has(label) && !family!.labels.has(label))
      expect(unknownLabels, `${metric} has ${[...family!.labels.keys()]}`).toEqual([])
      for (const [label, value] of values) {
        if (label !== 'code') expect([...family!.labels.get(label)!]).toContain(value)
      }
    }
  })

  it('SYS-17 of the guide are served', () => {
    const mentions = spansOf(GUIDE)
      .map((span) => span.replace(/\{.*\}$/, ''))
      .filter((span) => /^[a-z]+(_[a-z0-9]+){2,}$/.test(span))
    expect(mentions.length).toBeGreaterThan(20)
    const isServed = (name: string) => families.has(name) || families.has(`${name}_count`)
    expect(mentions.filter((name) => !isServed(name))).toEqual([])
  })
})

describe('the operations guide', () => {
  it('SYS-17 describes every alert', () => {
    expect(RULES.map(({ alert }) => alert).filter((alert) => !GUIDE.includes(`| \`${alert}\``))).toEqual([])
  })

  it('SYS-17 names only reasons, conditions, states and kinds that the program writes', async () => {
    const sources = await readProductionSources()
    const writtenNames = new Set(
      sources.flatMap(({ text }) => [...text.matchAll(/['"`]([A-Z]\w+)['"`]/g)].map(([, w]) => w)),
    )
    for (const { alert } of RULES) writtenNames.add(alert)
    const mentions = spansOf(GUIDE).filter((span) => /^[A-Z][a-z]+([A-Z][A-Za-z]*)+$/.test(span))
    expect(mentions.length).toBeGreaterThan(40)
    expect([...new Set(mentions)].filter((name) => !writtenNames.has(name))).toEqual([])
  })

  it('SYS-17 names only flags and commands that exist', () => {
    const program = createProgram({} as never)
    const flags = new Set(listCommandsBelow(program).flatMap(({ options }) => options.map(({ long }) => long)))
    const mentions = [...GUIDE.matchAll(/(?<![\w-])stowage ([a-z][a-z-]*)([^\n`|]*)/g)]
    expect(mentions.length).toBeGreaterThan(20)
    const commands = new Set(program.commands.map((command) => command.name()))
    for (const [line, command, args] of mentions) {
      expect([...commands], line).toContain(command)
      const unknownFlags = [...args!.matchAll(/--[a-z][a-z-]+/g)]
        .map(([flag]) => flag)
        .filter((flag) => !flags.has(flag))
      expect(
        unknownFlags.map((flag) => flag.replace(/^--no-/, '--')).filter((flag) => !flags.has(flag)),
        line,
      ).toEqual([])
    }
  })

  it('SYS-17 states every bound of its tables with the value in the code', async () => {
    const sources = new Map((await readProductionSources()).map(({ path, text }) => [path, text]))
    const rows = [...GUIDE.matchAll(/^\| [^|]+ \| ([^|]+) \| `([\w/.-]+\.ts) (\w+)` \|/gm)]
    expect(rows.length).toBeGreaterThan(40)
    for (const [row, statedText, path, name] of rows) {
      const text = sources.get(path!)
      expect(text, row).toBeDefined()
      const [, value] =
        new RegExp(`\\b${name}\\b(?:: \\w+)?[ =:]+([\\d_]+(?: \\*\\*? [\\d_]+)*|2 \\*\\* 32)`).exec(text!) ?? []
      expect(value, `${row}: ${name} is not a number in ${path}`).toBeDefined()
      const factors = value!
        .replaceAll('_', '')
        .replace(/(\d+) \*\* (\d+)/g, (_, a, b) => String(Number(a) ** Number(b)))
      const product = factors.split(' * ').reduce((result, factor) => result * Number(factor), 1)
      expect(amountOf(statedText!, name!), row).toBe(product)
    }
  })
})

/** Parses an amount in the unit of the constant: bytes, milliseconds, seconds, or a count. */
function amountOf(statedText: string, name: string): number {
  const [, digits, unit = ''] = /^([\d,.]+)(?: (KiB|MiB|ms|s|min|h|days))?\b/.exec(statedText.trim()) ?? []
  const scale: Record<string, number> = { KiB: 1024, MiB: 1024 ** 2, ms: 1, s: 1_000, min: 60_000, h: 3_600_000 }
  const amount = Number(digits?.replaceAll(',', '')) * (scale[unit] ?? 1)
  return name.includes('SECONDS') ? amount / 1_000 : amount
}

const spansOf = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!)

async function readProductionSources(): Promise<{ path: string; text: string }[]> {
  const names = await readdir(join(ROOT, 'src'), { recursive: true })
  const paths = names.filter((name) => name.endsWith('.ts') && !/\.test\.ts$|^sim\/|^csi\/fake\//.test(name))
  return Promise.all(paths.map(async (path) => ({ path, text: await readProjectFile(join('src', path)) })))
}

/** Polls until the condition is true or the test times out. */
async function pollUntil(condition: () => Promise<unknown>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}

const findFreePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolve(port))
    })
  })
