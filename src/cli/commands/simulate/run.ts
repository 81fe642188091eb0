// Runs `stowage simulate`: reads the files and a snapshot, simulates, prints the result. Throws ExitError with code 1 if
// something does not fit, and UsageError, which exits with code 2, if the simulation cannot run.
import { setMaxListeners } from 'node:events'
import { ApiError } from '../../../api/status-error.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import {
  readSnapshot,
  type SimulationProgress,
  type SimulationResult,
  type Snapshot,
  type SnapshotList,
  simulate,
} from '../../../diagnosis/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { createWorkProgress, type ProgressOutput, type WorkProgress } from '../../output/work-progress.ts'
import { buildScenario, type ScenarioFlags } from './build-scenario.ts'
import { formatResult } from './format-result.ts'
import { readInput } from './read-input.ts'

export interface SimulateFlags extends ScenarioFlags {
  readonly filename?: readonly string[]
  /** Manifests that are not in a file. */
  readonly manifests?: string
  readonly namespace?: string
  readonly setClass?: readonly string[]
  readonly quota?: readonly string[]
  readonly kubeconfig?: string
  readonly output: OutputFormat
}

export interface SimulateDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly hasColors: boolean
  /** Where long simulations show their progress. */
  readonly progressOutput: ProgressOutput
}

const TIMEOUT_MS = 30_000
const USER_AGENT = 'stowage-simulate'

/** Without these lists, the placement would be wrong. */
const REQUIRED_LISTS = [
  'pods',
  'nodes',
  'claims',
  'volumes',
  'classes',
  'drivers',
  'csiNodes',
  'attachments',
] as const satisfies readonly SnapshotList[]
/** Without these lists, the simulation does not check what they limit; without priority classes, new pods have priority 0. */
const OPTIONAL_LISTS = [
  'capacities',
  'quotas',
  'limitRanges',
  'attributesClasses',
  'priorityClasses',
] as const satisfies readonly SnapshotList[]

export async function runSimulate(flags: SimulateFlags, deps: SimulateDeps): Promise<void> {
  setMaxListeners(0, deps.signal) // every list of a snapshot adds a listener
  if (!flags.filename && !flags.drain && !flags.removeNode && !flags.pending)
    throw new UsageError('Nothing to place: set --filename, --drain, --remove-node or --pending.')
  const config = await loadClientConfig(flags.kubeconfig, deps)
  const { connection } = config
  const client = httpClient({ connection, clock: deps.clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT })
  try {
    const namespace = flags.namespace ?? config.namespace
    const result = await simulateWith(client, { ...flags, namespace }, deps)
    deps.write(await formatOutput(flags.output, result, () => formatResult(result, deps)))
    if (!result.fits) throw new ExitError(1)
  } catch (error) {
    if (error instanceof ApiError) throw new UsageError(error.message) // for exit code 2
    throw error
  } finally {
    client.close()
  }
}

/** Only reads: `client` lists objects and discovers which kinds are served. */
export async function simulateWith(
  client: Pick<Client, 'list' | 'serves'>,
  flags: Omit<SimulateFlags, 'output'> & { readonly namespace: string },
  deps: Pick<SimulateDeps, 'clock' | 'signal' | 'progressOutput'>,
): Promise<SimulationResult> {
  const { clock, signal } = deps
  const context = { namespace: flags.namespace, nowMs: clock.nowMs() }
  const input = await readInput(flags, context)
  const lists = [...REQUIRED_LISTS, ...OPTIONAL_LISTS]
  const snapshot = await readSnapshot({ client, lists, allNamespaces: true, nowMs: context.nowMs, signal })
  requirePermissions(snapshot)
  const { scenario, notes } = await buildScenario(snapshot, input, flags, context)
  const display = createProgress(deps)
  const pause = async () => {
    signal.throwIfAborted()
    await clock.nextTurn()
  }
  try {
    const result = await simulate(scenario, { random: alwaysZero, pause, onProgress: display.show })
    return { ...result, notes: [...missingRuleNotes(snapshot), ...notes, ...result.notes] }
  } finally {
    display.finish()
  }
}

/** Selects the last of several equal nodes, so that the same cluster and files give the same result. */
const alwaysZero = (): number => 0

function requirePermissions({ missingRules }: Snapshot): void {
  const rules = missingRules
    .filter(({ list }) => (REQUIRED_LISTS as readonly SnapshotList[]).includes(list))
    .map(({ rule }) => rule)
  if (rules.length > 0)
    throw new UsageError(
      `The simulation needs permission to ${rules.join(', ')}. Run it as a user who may read these objects, such as a viewer of the cluster.`,
    )
}

const missingRuleNotes = ({ missingRules }: Snapshot): string[] =>
  missingRules.map(({ list, rule }) =>
    list === 'priorityClasses'
      ? `Without permission to ${rule}, the priority of new pods is 0.`
      : `Without permission to ${rule}, the limits of ${UNCHECKED_LIMIT_NAMES[list] ?? list} are not checked.`,
  )

const UNCHECKED_LIMIT_NAMES: Partial<Record<SnapshotList, string>> = {
  capacities: 'capacity reports',
  limitRanges: 'limit ranges',
  attributesClasses: 'attributes classes',
}

/** Shows the progress of each round separately. */
function createProgress({ clock, progressOutput: output }: Pick<SimulateDeps, 'clock' | 'progressOutput'>) {
  let round = 0
  let progress: WorkProgress | undefined
  return {
    show({ completedPodCount, totalPodCount, round: currentRound }: SimulationProgress): void {
      if (currentRound !== round) {
        progress?.finish()
        round = currentRound
        const title = round === 1 ? 'Placing pods' : `Placing pods, round ${round}`
        progress = createWorkProgress({ title, unit: 'pods', total: totalPodCount, clock, output })
      }
      progress?.set(completedPodCount)
    },
    finish: () => progress?.finish(),
  }
}
