// What components that run beside a CSI driver have in common: finding their server and their node, and electing one of
// several.
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { processIdentity } from '../base/process-identity.ts'
import { UsageError } from '../base/usage-error.ts'
import { findServer } from '../client/find-server.ts'
import type { Client, Connection } from '../client/index.ts'
import type { ServedNode } from '../controllers/volume-changes/index.ts'
import { type CsiDriver, CsiError, type DriverFacts, driverFacts, waitUntilReady } from '../csi/index.ts'
import { createLeaderElection, type LeaderElection } from '../runtime/index.ts'

export interface ServerSettings {
  readonly kubeconfig: string
  readonly master: string
}

export interface SidecarRun {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The server, and the namespace this runs in. */
export async function serverOf(
  run: Pick<SidecarRun, 'clock' | 'env'> & { readonly settings: ServerSettings },
): Promise<{ connection: Connection; namespace: string }> {
  const { settings, clock, env } = run
  const isNamed = settings.kubeconfig || env.KUBECONFIG || env.KUBERNETES_SERVICE_HOST
  if (settings.master && !isNamed) {
    return { connection: { server: settings.master, credentials: async () => ({}) }, namespace: 'default' }
  }
  const { connection, namespace } = await findServer(settings.kubeconfig || undefined, { clock, env }).catch(
    (error) => {
      throw new UsageError((error as Error).message)
    },
  )
  return { connection: settings.master ? { ...connection, server: settings.master } : connection, namespace }
}

export interface MetDriver {
  readonly facts: DriverFacts
  /** With --node-deployment: the node this runs on, and where the driver says it is. */
  readonly node?: ServedNode
}

const ASK_AGAIN_MS = 1_000

/** What the driver says of itself, once it is ready. One that goes away while it is asked is waited for, like one that is late. */
export async function meetDriver(
  driver: CsiDriver,
  run: Omit<SidecarRun, 'random'> & { readonly settings: { readonly nodeDeployment: boolean } },
): Promise<MetDriver> {
  const { clock, log, signal } = run
  for (;;) {
    await waitUntilReady(driver, { clock, log, signal })
    try {
      const facts = await driverFacts(driver, signal)
      return run.settings.nodeDeployment ? { facts, node: await servedNode(driver, run) } : { facts }
    } catch (error) {
      if (signal.aborted || !(error instanceof CsiError && error.codeName === 'UNAVAILABLE')) throw error
      log.info({ because: error.message }, 'the CSI driver went away again; waiting for it')
      await clock.sleep(ASK_AGAIN_MS, signal)
    }
  }
}

async function servedNode(driver: CsiDriver, { env, signal }: Pick<SidecarRun, 'env' | 'signal'>): Promise<ServedNode> {
  const name = env.NODE_NAME
  if (!name) throw new UsageError('--node-deployment needs the name of the node: set $NODE_NAME from spec.nodeName.')
  const { accessibleTopology } = await driver.node.nodeGetInfo({}, { signal })
  return { name, ...(accessibleTopology ? { segments: accessibleTopology.segments } : {}) }
}

export interface ElectionSettings {
  readonly leaderElectionNamespace: string
  readonly leaderElectionLeaseDuration: number
  readonly leaderElectionRenewDeadline: number
  readonly leaderElectionRetryPeriod: number
}

export interface Leadership {
  run(lead: (term: AbortSignal, election: LeaderElection) => Promise<void>): Promise<void>
  /** What is wrong, if anything is. */
  problem(): string | undefined
}

interface LeadershipDeps extends SidecarRun {
  readonly settings: ElectionSettings
  readonly client: Client
  readonly namespace: string
  /** What the lease is called. */
  readonly leaseName: string
  onChange(name: string, isLeader: boolean): void
}

export function createLeadership(deps: LeadershipDeps): Leadership {
  const { settings, client, clock, random, log, signal, leaseName } = deps
  let isWorking = false
  const election = createLeaderElection({
    client,
    clock,
    random,
    log,
    namespace: settings.leaderElectionNamespace || deps.namespace,
    name: leaseName,
    identity: processIdentity(random),
    leaseMs: settings.leaderElectionLeaseDuration,
    renewDeadlineMs: settings.leaderElectionRenewDeadline,
    retryMs: settings.leaderElectionRetryPeriod,
    onChange: (isLeader) => deps.onChange(leaseName, isLeader),
  })
  return {
    problem: () => (isWorking && !election.isLeader ? 'the lease is lost, and work of the leader goes on' : undefined),
    run: (lead) =>
      election.run(async (term) => {
        isWorking = true
        try {
          await lead(term, election)
        } finally {
          isWorking = false
        }
      }, signal),
  }
}
