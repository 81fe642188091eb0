// The flags, help, action and output that `stowage up` and `stowage server` share. processes/server/serve.ts runs the server.
import { type Command, Option } from 'commander'
import { EXPANSION_QUOTAS } from '../../../api/kind.ts'
import { formatQuantity, quantityFromBytes } from '../../../api/quantity.ts'
import { DEFAULT_ISSUER } from '../../../apiserver/service-accounts/default-issuer.ts'
import { stowageVersion } from '../../../apiserver/version.ts'
import { DEFAULT_LISTEN, parseListen } from '../../../base/listen-address.ts'
import type { Logger } from '../../../base/log.ts'
import { quoteShellWord } from '../../../base/shell-word.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { StartedNodes } from '../../../processes/server/nodes/local-nodes.ts'
import type { ReadyServer } from '../../../processes/server/serve.ts'
import { createProcessDeps, type ProgramDeps } from '../../command.ts'
import { addAuditFlags, parseAuditFlags } from '../../flags/audit.ts'
import { parseChangeThrottle } from '../../flags/change-throttle.ts'
import {
  dataDirOption,
  defaultDataDir,
  logFormatOption,
  logLevelOption,
  outputOption,
  parseDataDir,
  parseDurationFlag,
  parseLostVolumePolicyFlag,
  parseMaxVolumes,
  parseNodeMonitorGrace,
  parsePlacementFlag,
  parsePoolSize,
  pkiDirOption,
} from '../../flags/common.ts'
import { parsePodFlags } from '../../flags/pod-options.ts'
import { loadValueFormatter } from '../../output/format-output.ts'
import { parsePort } from '../console/parse-port.ts'
import type { UpConsole, UpConsoleOptions } from '../console/up-console.ts'
import { parseDriverFlags } from './driver-flag.ts'
import { reportDriver } from './report-driver.ts'

interface ServeCommand {
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly runsControllers: boolean
}

export function addServeCommand(program: Command, deps: ProgramDeps, options: ServeCommand): Command {
  const { name, summary, description, runsControllers } = options
  const command = program
    .command(name)
    .summary(summary)
    .description(description)
    .addOption(dataDirOption())
    .option('--store <url>', 'use etcd instead of the embedded store: etcd://HOST:PORT[,HOST:PORT…][/PREFIX]')
    .option('--etcd-ca <file>', 'certificate authority of etcd, for etcds://')
    .option('--etcd-cert <file>', 'client certificate for etcd')
    .option('--etcd-key <file>', 'key of the client certificate')
    .addOption(pkiDirOption())
    .option(
      '--pki-source <dir>',
      'directory, such as a mounted Secret, from which to copy the credentials that servers share to the pki directory',
    )
    .option('--tls-san <hosts>', 'more host names and addresses of the serving certificate, separated by commas', '')
    .option(
      '--encryption-provider-config <file>',
      'configuration of encryption at rest (default: PKI-DIR/encryption.yaml, created for a new store)',
    )
    .option('--listen <host:port>', 'address on which to serve the API', DEFAULT_LISTEN)
    .option(
      '--service-account-issuer <url>',
      'issuer of the tokens of ServiceAccounts; servers that share a store need the same',
      DEFAULT_ISSUER,
    )
    .option(
      '--service-account-max-token-expiration <duration>',
      'longest lifetime of a token of a ServiceAccount',
      '8760h',
    )
    .option('--feature-gates <gates>', 'enable or disable features, e.g. VolumeProvisionedIO=false', '')
    .addOption(
      new Option(
        '--expansion-quota <size>',
        'size that quota charges after the request of a claim is lowered; see docs/explanation/quota.md',
      )
        .choices(EXPANSION_QUOTAS)
        .default('high-water-mark'),
    )
    .option('--runtime-config <versions>', 'enable or disable API versions, e.g. storage.k8s.io/v1alpha1=false', '')
    .option('--history-minutes <minutes>', 'how long old revisions are retained for watches and paged lists', '5')
    .option(
      '--upgrade-etcd-format',
      'write checksums to an etcd store that version 0.1.0 created; set it when all servers run version 0.2.0 or newer',
    )
    .addOption(
      new Option('--journal <switch>', 'whether to record the changes of claims and volumes for `stowage timeline`')
        .choices(['on', 'off'])
        .default('on'),
    )
    .option('--otlp-endpoint <url>', 'OpenTelemetry collector for traces of claims, such as http://collector:4318')
    .option('--scrub-rate <MiB/s>', 'how fast the embedded store is read to find damage; 0 for never', '4')
    .addOption(logLevelOption('info; on a terminal warn'))
    .addOption(logFormatOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `\nExample:\n  stowage ${name} --listen 127.0.0.1:7443 &\n  kubectl --kubeconfig ${defaultDataDir()}/admin.kubeconfig get namespaces\n`,
    )
    .action(async (flags) => {
      const historyMinutes = Number(flags.historyMinutes)
      if (!(historyMinutes > 0))
        throw new UsageError(`--history-minutes ${JSON.stringify(flags.historyMinutes)}: expected a number above 0`)
      const scrubRate = Number(flags.scrubRate)
      if (!(scrubRate >= 0))
        throw new UsageError(
          `--scrub-rate ${JSON.stringify(flags.scrubRate)}: expected a number of MiB per second, or 0`,
        )
      const drivers = parseDriverFlags(flags)
      const { serve } = await import('../../../processes/server/serve.ts')
      const { checkAccountTokenSettings } = await import('../../../processes/server/account-tokens.ts')
      const formatValue = await loadValueFormatter(flags.output, { isStream: true })
      // On a terminal the output reports the start, and log lines of the start would appear between its lines.
      const logLevel = flags.logLevel ?? (process.stderr.isTTY && !formatValue ? 'warn' : 'info')
      const { clock, random, log, signal } = await createProcessDeps(deps, { ...flags, logLevel })
      const dataDir = parseDataDir(flags.dataDir)
      const consoleListener = hasConsole(flags)
        ? await listenForConsole(flags, { clock, random, log, dataDir })
        : undefined
      signal.addEventListener('abort', () => void consoleListener?.close(), { once: true })
      let areNodesPending = false
      const pendingReports: (() => void)[] = [] // scripts expect the line of the nodes before those of the drivers
      await serve({
        dataDir,
        store: flags.store,
        etcdTls: { ca: flags.etcdCa, cert: flags.etcdCert, key: flags.etcdKey },
        pkiDir: flags.pkiDir,
        pkiSource: flags.pkiSource,
        listen: parseListen(flags.listen),
        servingHosts: parseHosts(flags.tlsSan),
        accountTokens: checkAccountTokenSettings({
          issuer: flags.serviceAccountIssuer,
          lifetimeMsMax: parseDurationFlag(
            '--service-account-max-token-expiration',
            flags.serviceAccountMaxTokenExpiration,
          ),
        }),
        featureGates: flags.featureGates,
        expansionQuota: flags.expansionQuota,
        runtimeConfig: flags.runtimeConfig,
        historyMinutes,
        scrubBytesPerSecond: scrubRate * 2 ** 20,
        upgradesEtcdFormat: flags.upgradeEtcdFormat === true,
        hasJournal: flags.journal !== 'off',
        tracesUrl: parseOtlpEndpoint(flags.otlpEndpoint),
        audit: parseAuditFlags(flags),
        encryptionProviderConfig: flags.encryptionProviderConfig,
        volumesDir: flags.volumesDir,
        drivers,
        nodes: flags.nodes === undefined ? undefined : parseNodeCount(flags.nodes),
        poolBytes: parsePoolSize(flags.poolSize),
        maxVolumesPerNode: parseMaxVolumes(flags.maxVolumesPerNode),
        podOptions: parsePodFlags(flags),
        runsScheduler: flags.scheduler !== false,
        reservesCapacity: flags.capacityReservation !== 'off',
        defaultPlacement: parsePlacementFlag(flags.placement),
        lostVolumePolicy: parseLostVolumePolicyFlag(flags.lostVolumePolicy),
        nodeMonitorGraceMs: parseNodeMonitorGrace(flags.nodeMonitorGracePeriod),
        capacityMissingForMs:
          flags.capacityGoneFor === undefined
            ? undefined
            : parseDurationFlag('--capacity-gone-for', flags.capacityGoneFor),
        throttle: parseChangeThrottle(flags),
        runsControllers,
        warmsUp: flags.warmUp === 'on', // only `up` has the flag
        clock,
        random,
        log,
        signal,
        onReady: (readyServer) => {
          consoleListener?.setReady(readyServer)
          const consoleUrl = consoleListener?.url
          const startMs = Math.round(performance.now())
          areNodesPending = readyServer.nodes > 0
          deps.write(
            formatValue?.({ ...readyServer, ...(consoleUrl ? { console: consoleUrl } : {}), startMs }) ??
              formatReadyServer({ ...readyServer, consoleUrl, drivers: drivers.length }, startMs),
          )
        },
        onNodes: (nodes) => {
          const startMs = Math.round(performance.now())
          const isTerminal = Boolean(process.stderr.isTTY)
          reportNodes({ nodes, startMs }, { formatValue, isTerminal, log, write: deps.write })
          areNodesPending = false
          for (const report of pendingReports.splice(0)) report()
        },
        onDriver: (driverReport) => {
          const startMs = Math.round(performance.now())
          const output = { formatValue, isTerminal: Boolean(process.stderr.isTTY), log, write: deps.write }
          const report = () => reportDriver(driverReport, output, startMs)
          if (formatValue && areNodesPending) pendingReports.push(report)
          else report()
        },
      }).finally(() => consoleListener?.close())
    })
  return addAuditFlags(command)
}

/** Writes the nodes to the output, and logs their shortcomings unless output and log appear on one terminal. */
export function reportNodes(
  { nodes, startMs }: { readonly nodes: StartedNodes; readonly startMs: number },
  output: Pick<ProgramDeps, 'write'> & {
    /** Undefined for text. */
    readonly formatValue: ((value: object) => string) | undefined
    readonly isTerminal: boolean
    readonly log: Logger
  },
): void {
  const { formatValue, isTerminal, log, write } = output
  if (formatValue || !isTerminal) for (const text of nodes.shortcomings) log.warn({ backend: nodes.backend }, text)
  write(formatValue?.({ nodes, startMs }) ?? formatNodes(nodes, startMs))
}

interface ReadyText extends ReadyServer {
  readonly consoleUrl: string | undefined
  /** Number of the user's drivers that are starting. */
  readonly drivers: number
}

function formatReadyServer(
  { url, consoleUrl, kubeconfig, dataDir, nodes, drivers }: ReadyText,
  startMs: number,
): string {
  const startingLines = Object.entries({ nodes, drivers })
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `  ${name.padEnd(12)}${count}, starting\n`)
    .join('')
  return (
    `Stowage ${stowageVersion} is ready (${startMs} ms).\n` +
    `  API         ${url}\n${consoleUrl ? `  console     ${consoleUrl}\n` : ''}  kubeconfig  ${kubeconfig}\n  data        ${dataDir}\n${startingLines}` +
    `\nTry it:\n  export KUBECONFIG=${quoteShellWord(kubeconfig)}\n  kubectl get ${nodes > 0 ? 'nodes' : 'namespaces'}\n`
  )
}

function formatNodes(
  { names, backend, poolBytes, shortcomings, idle: idleNodes }: StartedNodes,
  startMs: number,
): string {
  const storage = backend === 'loop' ? 'loop devices' : 'directories'
  const notes = [...shortcomings, ...formatIdleNotes(idleNodes)].map((text) => `  note        ${text}\n`).join('')
  const size = formatQuantity(quantityFromBytes(poolBytes))
  return `\nNodes ready (${startMs} ms).\n  nodes       ${names.join(', ')}\n  storage     ${storage}, ${size} each\n${notes}`
}

function formatIdleNotes(idleNodes: readonly string[]): string[] {
  if (idleNodes.length === 0) return []
  const count = idleNodes.at(-1)!.split('-').at(-1)
  return [
    `Nodes of an earlier start that are not running: ${idleNodes.join(', ')}. --nodes ${count} starts them again.`,
  ]
}

/** Only `up` has the flag. */
const hasConsole = ({ console: flag }: { readonly console?: boolean }): boolean => flag === true

async function listenForConsole(
  { consolePort }: { readonly consolePort?: string },
  deps: Omit<UpConsoleOptions, 'port'>,
): Promise<UpConsole> {
  const port = parsePort('--console-port', consolePort)
  const { listenUpConsole } = await import('../console/up-console.ts')
  return listenUpConsole({ ...deps, port })
}

const parseHosts = (text: string): string[] =>
  text
    .split(',')
    .map((host) => host.trim())
    .filter((host) => host !== '')

/** Returns the URL for traces: that of the collector with the path /v1/traces. */
export function parseOtlpEndpoint(endpoint: string | undefined): string | undefined {
  if (endpoint === undefined) return undefined
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`--otlp-endpoint ${JSON.stringify(endpoint)}: expected a URL such as http://collector:4318`)
  if (!url.pathname.endsWith('/v1/traces')) url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`
  return url.href
}

/** Limited because all nodes run in one process. */
const NODES_MAX = 100

function parseNodeCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count <= NODES_MAX) return count
  throw new UsageError(`--nodes ${JSON.stringify(text)}: expected a number from 0 to ${NODES_MAX}`)
}
