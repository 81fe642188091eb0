// The command line: every command, its flags and its help. What a command does is in the file it imports.
import { Command, Option } from 'commander'
import { EXPANSION_QUOTAS } from '../api/kind.ts'
import { formatQuantity, quantityFromBytes } from '../api/quantity.ts'
import { stowageVersion, versionInfo } from '../apiserver/version.ts'
import { DEFAULT_LISTEN, parseListen } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'
import type { NodesTold } from '../processes/local-nodes.ts'
import { addBackup } from './backup-flags.ts'
import { completionScript, SHELLS } from './completion.ts'
import { dataDirOf, defaultDataDir, nodeCountOf, poolBytesOf } from './flags.ts'
import { addGrow } from './grow-flags.ts'
import { leaseDurationOption } from './lease-flag.ts'
import { addMigrate } from './migrate-flags.ts'
import { addNode } from './node-flags.ts'
import { changeBudgetOption, changeCooldownOption, parsePace } from './pace-flags.ts'
import type { ProgramDeps } from './program-deps.ts'
import { addProvisioner } from './provisioner-flags.ts'
import { addResizer } from './resizer-flags.ts'

const OUTPUT = () =>
  new Option('-o, --output <format>', 'how to print the answer').choices(['text', 'json']).default('text')
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

export function createProgram(deps: ProgramDeps): Command {
  const program = new Command('stowage')
    .description('A storage control plane that speaks the Kubernetes API.')
    .version(stowageVersion, '-V, --version', 'print the version')
    .helpCommand('help [command]', 'explain a command')
    .showHelpAfterError('(stowage --help lists the commands)')
    .exitOverride()

  addServing(program, deps, {
    name: 'up',
    summary: 'start the whole system on this machine',
    about:
      'Starts the API server on an embedded store, the controllers, the scheduler, and three nodes with storage, in one ' +
      'process. A second start on the same directory continues with the same data, certificate authority and credentials.',
    controllers: true,
  })
  addServing(program, deps, {
    name: 'server',
    summary: 'start the API server alone',
    about: 'Starts the API server on an embedded store, without any controller.',
    controllers: false,
  })

  addDriver(program, deps)

  addProvisioner(program, deps, LOG_LEVELS)
  addResizer(program, deps, LOG_LEVELS)
  addNode(program, deps, LOG_LEVELS)
  addGrow(program, deps)
  addMigrate(program, deps)
  addBackup(program, deps)

  const controllers = program
    .command('controllers')
    .summary('run the controllers against any Kubernetes API server')
    .description(
      'Runs the controllers of `stowage up` in a process of their own. On a cluster whose own controller manager binds ' +
        'claims already, run none of those it has.',
    )
    .option('--kubeconfig <file>', 'kubeconfig of the server (default: $KUBECONFIG, else the cluster this runs in)')
    .option(
      '--controllers <names>',
      'which of them, by comma (default: all but scheduler: attaching,binding,capacity-cleanup,ephemeral,garbage,namespaces,node-lifecycle,protection,quota)',
    )
    .option('--feature-gates <gates>', 'switch features, e.g. VolumeAttributesClass=false', '')
    .addOption(driverSocketOption())
    .addOption(changeBudgetOption())
    .addOption(changeCooldownOption())
  addRemoteOptions(controllers)
    .addHelpText(
      'after',
      '\nExample:\n  stowage controllers --kubeconfig ~/.kube/config --controllers binding,protection\n',
    )
    .action(async (flags) => {
      const [{ runRemoteControllers }, { createLog }] = await Promise.all([
        import('./remote-controllers.ts'),
        import('../runtime/log.ts'),
      ])
      await runRemoteControllers(flags, { ...deps, log: createLog(flags.logLevel), env: process.env })
    })

  const scheduler = program
    .command('scheduler')
    .summary('place pods where their volumes fit, on any Kubernetes API server')
    .description('Runs the scheduler of `stowage up` in a process of its own.')
    .option('--kubeconfig <file>', 'kubeconfig of the server (default: $KUBECONFIG, else the cluster this runs in)')
    .option(
      '--scheduler-names <names>',
      'whose pods it places, by comma (default: default-scheduler,stowage-scheduler)',
    )
    .addOption(capacityReservationOption())
    .option('--bind-timeout-seconds <seconds>', 'how long a pod waits for its volumes before it is tried anew', '600')
    .option('--feature-gates <gates>', 'switch features, e.g. CSIStorageCapacity=false', '')
  addRemoteOptions(scheduler)
    .addHelpText(
      'after',
      '\nExample:\n  stowage scheduler --kubeconfig ~/.kube/config --scheduler-names stowage-scheduler\n',
    )
    .action(async (flags) => {
      const [{ runScheduler }, { createLog }] = await Promise.all([
        import('./scheduler.ts'),
        import('../runtime/log.ts'),
      ])
      await runScheduler(flags, { ...deps, log: createLog(flags.logLevel), env: process.env })
    })

  const cleanup = program
    .command('capacity-cleanup')
    .summary('remove capacity objects of nodes whose driver is gone')
    .description(
      'Where a provisioner on every node publishes capacity, a node that is removed leaves its CSIStorageCapacity objects ' +
        'behind, and pods are sent after them. This removes them once the driver has been missing from the CSINode for a ' +
        'while. It needs no driver. `stowage up` and `stowage controllers` do the same for all drivers.',
    )
    .option('--kubeconfig <file>', 'kubeconfig of the server (default: $KUBECONFIG, else the cluster this runs in)')
    .addOption(
      new Option('--driver-name <name>', 'whose objects; may be repeated (default: those of all drivers)').argParser(
        (name, before: string[] = []) => [...before, name],
      ),
    )
    .option('--gone-for <duration>', 'how long the driver must have been missing', '10m')
    .option('--namespace <name>', 'where the objects are (default: everywhere)')
  addRemoteOptions(cleanup)
    .addHelpText(
      'after',
      '\nExample:\n  stowage capacity-cleanup --kubeconfig ~/.kube/config --driver-name hostpath.csi.k8s.io --gone-for 30m\n',
    )
    .action(async (flags) => {
      const [{ runCapacityCleanup }, { createLog }] = await Promise.all([
        import('./capacity-cleanup.ts'),
        import('../runtime/log.ts'),
      ])
      await runCapacityCleanup(flags, { ...deps, log: createLog(flags.logLevel), env: process.env })
    })

  program
    .command('kubeconfig')
    .summary('print a kubeconfig for this machine’s server')
    .description(
      'Prints the kubeconfig of one of the built-in identities: admin may do everything, viewer may read everything but secrets.',
    )
    .addOption(dataDirOption())
    .addOption(new Option('--user <name>', 'whose kubeconfig').choices(['admin', 'viewer']).default('admin'))
    .option('--pki-dir <dir>', 'where the server keeps its credentials (default: pki in the data directory)')
    .option('--server <url>', 'address to write into it (default: the one the server last listened on)')
    .addHelpText('after', '\nExample:\n  stowage kubeconfig --user viewer > viewer.kubeconfig\n')
    .action(async (flags) => {
      const { printKubeconfig } = await import('./print-kubeconfig.ts')
      deps.write(
        await printKubeconfig({
          dataDir: dataDirOf(flags.dataDir),
          pkiDir: flags.pkiDir,
          user: flags.user,
          server: flags.server,
          clock: deps.clock,
        }),
      )
    })

  program
    .command('version')
    .summary('print the version')
    .description('Prints the version of this program and the level of the Kubernetes API it serves.')
    .addOption(OUTPUT())
    .action((flags) => {
      const { gitVersion, goVersion, platform } = versionInfo()
      const version = { stowage: stowageVersion, api: gitVersion, node: goVersion.slice('node '.length), platform }
      deps.write(
        flags.output === 'json'
          ? `${JSON.stringify(version, null, 2)}\n`
          : `stowage ${version.stowage} (serves ${version.api}, node ${version.node}, ${version.platform})\n`,
      )
    })

  program
    .command('completion')
    .summary('print a shell completion script')
    .description('Prints a script that completes commands and flags.')
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText('after', '\nExample:\n  source <(stowage completion bash)\n')
    .action((shell: string) => deps.write(completionScript(program, shell)))

  return program
}

interface Serving {
  readonly name: string
  readonly summary: string
  readonly about: string
  readonly controllers: boolean
}

function addServing(program: Command, deps: ProgramDeps, { name, summary, about, controllers }: Serving): void {
  const command = program
    .command(name)
    .summary(summary)
    .description(about)
    .addOption(dataDirOption())
    .option('--store <url>', 'share an etcd instead of the embedded store: etcd://HOST:PORT[,HOST:PORT…][/PREFIX]')
    .option('--etcd-ca <file>', 'certificate authority of an etcd reached by etcds://')
    .option('--etcd-cert <file>', 'our certificate for that etcd')
    .option('--etcd-key <file>', 'and its key')
    .option('--pki-dir <dir>', 'keys and certificates; the same for servers that share a store (default: DATA-DIR/pki)')
    .option('--listen <host:port>', 'address to serve the API on', DEFAULT_LISTEN)
    .option('--feature-gates <gates>', 'switch features, e.g. VolumeProvisionedIO=false', '')
    .addOption(expansionQuotaOption())
    .option('--runtime-config <versions>', 'switch API versions, e.g. storage.k8s.io/v1alpha1=false', '')
    .option('--history-minutes <minutes>', 'how long old states are kept for watches and paged lists', '5')
    .addOption(
      new Option('--log-level <level>', 'how much to log (to standard error)').choices(LOG_LEVELS).default('info'),
    )
    .addOption(OUTPUT())
    .addHelpText(
      'after',
      `\nExample:\n  stowage ${name} --listen 127.0.0.1:7443 &\n  kubectl --kubeconfig ${defaultDataDir()}/admin.kubeconfig get namespaces\n`,
    )
    .action(async (flags) => {
      const [{ serve }, { createLog }] = await Promise.all([
        import('../processes/serve.ts'),
        import('../runtime/log.ts'),
      ])
      const minutes = Number(flags.historyMinutes)
      if (!(minutes > 0))
        throw new UsageError(`--history-minutes ${JSON.stringify(flags.historyMinutes)}: expected a number above 0`)
      await serve({
        dataDir: dataDirOf(flags.dataDir),
        store: flags.store,
        etcdTls: { ca: flags.etcdCa, cert: flags.etcdCert, key: flags.etcdKey },
        pkiDir: flags.pkiDir,
        listen: parseListen(flags.listen),
        featureGates: flags.featureGates,
        expansionQuota: flags.expansionQuota,
        runtimeConfig: flags.runtimeConfig,
        historyMinutes: minutes,
        volumesDir: flags.volumesDir,
        driverSockets: flags.driverSocket ?? [],
        nodes: flags.nodes === undefined ? undefined : nodeCountOf(flags.nodes),
        poolBytes: poolBytesOf(flags.poolSize),
        runCommands: flags.runCommands === true,
        capacityReservation: flags.capacityReservation !== 'off',
        pace: parsePace(flags),
        controllers,
        clock: deps.clock,
        random: deps.random,
        log: createLog(flags.logLevel),
        signal: deps.signal,
        onReady: (ready) => {
          const startMs = Math.round(performance.now())
          if (flags.output === 'json') return deps.write(`${JSON.stringify({ ...ready, startMs })}\n`)
          const coming = ready.nodes > 0 ? `  nodes       ${ready.nodes}, coming up\n` : ''
          deps.write(
            `Stowage ${stowageVersion} is ready (${startMs} ms).\n` +
              `  API         ${ready.url}\n  kubeconfig  ${ready.kubeconfig}\n  data        ${ready.dataDir}\n${coming}` +
              `\nTry it:\n  export KUBECONFIG=${shellWord(ready.kubeconfig)}\n  kubectl get ${ready.nodes > 0 ? 'nodes' : 'namespaces'}\n`,
          )
        },
        onNodes: (nodes) => {
          const startMs = Math.round(performance.now())
          deps.write(flags.output === 'json' ? `${JSON.stringify({ nodes, startMs })}\n` : nodesText(nodes, startMs))
        },
      })
    })
  if (!controllers) return
  command
    .option('--nodes <count>', 'nodes to make here, each with a driver for local storage (default: 3; 0 with --store)')
    .option('--pool-size <size>', 'how much storage each of them has (default: 10Gi, less on a small disk)')
    .option('--run-commands', 'run the commands of pods as processes of this machine, see docs/explanation/nodes.md')
    .option('--volumes-dir <dir>', 'where volumes that are directories are made (default: DATA-DIR/volumes)')
    .addOption(driverSocketOption())
    .addOption(capacityReservationOption())
    .addOption(changeBudgetOption())
    .addOption(changeCooldownOption())
}

function addDriver(program: Command, deps: ProgramDeps): void {
  const each = (value: string, before: string[] = []) => [...before, value]
  program
    .command('driver')
    .summary('serve the local CSI driver')
    .description(
      'Serves the CSI driver local.csi.stowage.dev on a unix socket. Its volumes are files in a pool directory, attached ' +
        'as loop devices with a file system and IO limits of their own. Without the rights for that they are directories.',
    )
    .requiredOption('--endpoint <address>', 'socket to serve on, such as unix:///run/stowage/csi.sock')
    .requiredOption('--node-id <name>', 'name of this node')
    .requiredOption('--pool <dir>', 'directory that holds the volumes')
    .option('--pool-size <size>', 'how much volumes may take together, such as 10Gi (default: what the disk has)')
    .addOption(
      new Option('--backend <name>', 'what volumes are made of').choices(['auto', 'loop', 'directory']).default('auto'),
    )
    .option('--topology-key <key>', 'label that tells which node a volume is on', 'local.csi.stowage.dev/node')
    .option(
      '--workload-cgroup <path>',
      'cgroup whose processes IO limits apply to, * and ** allowed; may be repeated',
      each,
    )
    .option('--metrics-address <host:port>', 'serve /metrics there')
    .addOption(
      new Option('--log-level <level>', 'how much to log (to standard error)').choices(LOG_LEVELS).default('info'),
    )
    .addOption(OUTPUT())
    .addHelpText(
      'after',
      '\nExample:\n  stowage driver --endpoint unix:///run/stowage/csi.sock --node-id $(hostname) --pool /var/lib/stowage/pool --pool-size 10Gi\n',
    )
    .action(async (flags) => {
      const [{ runDriver }, { createLog }] = await Promise.all([import('./driver.ts'), import('../runtime/log.ts')])
      const { clock, signal } = deps
      await runDriver(
        { ...flags, workloadCgroup: flags.workloadCgroup ?? [] },
        {
          clock,
          signal,
          log: createLog(flags.logLevel),
          onReady: ({ backend, shortcomings, poolBytes, metricsPort }) => {
            if (flags.output === 'json') {
              return deps.write(
                `${JSON.stringify({ endpoint: flags.endpoint, backend, shortcomings, poolBytes, metricsPort })}\n`,
              )
            }
            const notes = shortcomings.map((text) => `  note        ${text}\n`).join('')
            deps.write(
              `The local CSI driver is ready.\n  endpoint    ${flags.endpoint}\n  pool        ${flags.pool}\n  backend     ${backend}\n${notes}`,
            )
          },
        },
      )
    })
}

const dataDirOption = () => new Option('--data-dir <dir>', `where everything is kept (default: ${defaultDataDir()})`)

/** A word for the shell, quoted where it must be. */
const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

const driverSocketOption = () =>
  new Option('--driver-socket <path>', 'provide the volumes of the CSI driver there; may be repeated').argParser(
    (path, before: string[] = []) => [...before, path],
  )

const expansionQuotaOption = () =>
  new Option(
    '--expansion-quota <size>',
    'what a claim that took back a growth is charged, see docs/explanation/quota.md',
  )
    .choices(EXPANSION_QUOTAS)
    .default('high-water-mark')

const capacityReservationOption = () =>
  new Option('--capacity-reservation <on|off>', 'hold back capacity that is promised and not yet reported as used')
    .choices(['on', 'off'])
    .default('on')

function nodesText({ names, backend, poolBytes, shortcomings, idle }: NodesTold, startMs: number): string {
  const kept = backend === 'loop' ? 'loop devices' : 'directories'
  const notes = [...shortcomings, ...idleNotes(idle)].map((text) => `  note        ${text}\n`).join('')
  const size = formatQuantity(quantityFromBytes(poolBytes))
  return `\nThe nodes take pods (${startMs} ms).\n  nodes       ${names.join(', ')}\n  storage     ${kept}, ${size} each\n${notes}`
}

function idleNotes(idle: readonly string[]): string[] {
  if (idle.length === 0) return []
  const count = idle.at(-1)!.split('-').at(-1)
  return [`From an earlier start, and not started now: ${idle.join(', ')}. --nodes ${count} starts them again.`]
}

/** Of every command that works on a server somewhere, in a process of its own. */
function addRemoteOptions(command: Command): Command {
  return command
    .option('--no-leader-election', 'work at once, without asking whether another process does')
    .addOption(leaseDurationOption())
    .option('--http-endpoint <host:port>', 'where to show metrics and /healthz')
    .addOption(
      new Option('--log-level <level>', 'how much to log (to standard error)').choices(LOG_LEVELS).default('info'),
    )
}
