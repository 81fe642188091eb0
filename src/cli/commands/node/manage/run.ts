// Runs the commands that manage nodes: `stowage node list|cordon|uncordon|drain|fence|unfence|forget`.
import { isFenced, isOutOfService } from '../../../../api/kinds/node/fencing.ts'
import { ApiError } from '../../../../api/status-error.ts'
import { loadClientConfig } from '../../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../../client/index.ts'
import { findSimilarNames, readSnapshot, type Snapshot } from '../../../../diagnosis/index.ts'
import type { ProgramDeps } from '../../../command.ts'
import { confirm } from '../../../confirm.ts'
import { ExitError } from '../../../exit-error.ts'
import { formatNames } from '../../../format-names.ts'
import { formatOutput, type OutputFormat } from '../../../output/format-output.ts'
import { createWorkProgress, standardError } from '../../../output/work-progress.ts'
import { drainNode, setCordon } from './drain.ts'
import { checkCanFence, checkCanUnfence, fenceNode, refusalToFence, unfenceNode } from './fence.ts'
import { type ForgetResult, forgetNode } from './forget.ts'
import { formatDrainPlan, formatDrainResult, formatForgetPlan } from './format.ts'
import { formatNodes, listNodes } from './list-nodes.ts'
import type { StoredNode } from './node-facts.ts'
import { type DrainFlags, planDrain } from './plan-drain.ts'
import { planForget } from './plan-forget.ts'

export interface NodeFlags {
  readonly kubeconfig?: string
  readonly output: OutputFormat
  readonly dryRun?: boolean
}

const LISTS = ['nodes', 'pods', 'claims', 'volumes', 'attachments', 'csiNodes', 'capacities'] as const

interface NodeSession {
  readonly client: Client
  readonly snapshot: Snapshot
}

/** Reads the cluster and runs the command. Throws if a list cannot be read, because a plan on partial data would be wrong. */
async function withCluster<T>(
  flags: NodeFlags,
  deps: ProgramDeps,
  run: (session: NodeSession) => Promise<T>,
): Promise<T> {
  const { clock, signal } = deps
  const { connection } = await loadClientConfig(flags.kubeconfig, { ...deps, env: process.env })
  const client = httpClient({ connection, clock, userAgent: 'stowage-node' })
  try {
    const snapshot = await readSnapshot({ client, lists: LISTS, allNamespaces: true, nowMs: clock.nowMs(), signal })
    const [missingRule] = snapshot.missingRules
    if (missingRule) throw new Error(`Nodes cannot be examined: you need permission to ${missingRule.rule}.`)
    return await run({ client, snapshot })
  } finally {
    client.close()
  }
}

function findNode({ nodes }: Snapshot, name: string): StoredNode {
  const node = nodes.find(({ metadata }) => metadata.name === name)
  if (node) return node
  const similar = findSimilarNames(
    name,
    nodes.map(({ metadata }) => metadata.name),
  )
  throw new ApiError(
    404,
    'NotFound',
    `There is no node "${name}".${similar.length > 0 ? ` Similar names: ${formatNames(similar)}.` : ''}`,
  )
}

export const runList = (flags: NodeFlags, deps: ProgramDeps) =>
  withCluster(flags, deps, async ({ snapshot }) => {
    const nodes = listNodes(snapshot)
    deps.write(await formatOutput(flags.output, { nodes }, () => formatNodes(nodes)))
  })

export const runCordon = (name: string, isCordoned: boolean, flags: NodeFlags, deps: ProgramDeps) =>
  withCluster(flags, deps, async ({ client, snapshot }) => {
    const node = findNode(snapshot, name)
    const isDryRun = flags.dryRun === true
    const isChanged = (node.spec?.unschedulable === true) !== isCordoned
    if (isChanged) await setCordon(client, name, isCordoned, { dryRun: isDryRun })
    const result = { node: name, isCordoned, isChanged, isDryRun }
    const state = isCordoned ? 'cordoned: it gets no new pods' : 'uncordoned: it gets new pods'
    deps.write(await formatOutput(flags.output, result, () => describeChange(name, state, result)))
  })

const describeChange = (
  name: string,
  state: string,
  { isChanged, isDryRun }: { isChanged: boolean; isDryRun: boolean },
): string => `Node ${name} ${isChanged ? (isDryRun ? 'would be ' : 'is ') : 'is already '}${state}.\n`

export interface DrainCommandFlags extends NodeFlags, DrainFlags {
  readonly timeoutMs: number
  readonly gracePeriodSeconds?: number
}

export const runDrain = (name: string, flags: DrainCommandFlags, deps: ProgramDeps) =>
  withCluster(flags, deps, async ({ client, snapshot }) => {
    const { clock, signal } = deps
    const plan = planDrain(findNode(snapshot, name), snapshot, flags)
    if (flags.dryRun) {
      deps.write(await formatOutput(flags.output, { ...plan, isDryRun: true }, () => formatDrainPlan(plan)))
      if (plan.pods.some(({ flag }) => flag)) throw new ExitError(1)
      return
    }
    if (flags.output === 'text') deps.write(formatDrainPlan(plan))
    const total = plan.pods.filter(({ action }) => action !== 'keep').length
    const progress = createWorkProgress({
      title: `Draining ${name}`,
      unit: 'pods',
      total,
      clock,
      output: standardError(),
    })
    const result = await drainNode(plan, snapshot, flags, {
      client,
      clock,
      signal,
      onProgress: (doneCount) => progress.set(doneCount),
    }).finally(() => progress.finish())
    deps.write(await formatOutput(flags.output, { ...plan, ...result }, () => formatDrainResult(plan, result)))
    if (plan.pods.some(({ flag }) => flag) || result.waitingPods.length + result.attachedVolumes.length > 0)
      throw new ExitError(1)
  })

export const runFence = (name: string, flags: NodeFlags & { readonly confirmOff?: boolean }, deps: ProgramDeps) =>
  withCluster(flags, deps, async ({ client, snapshot }) => {
    const node = findNode(snapshot, name)
    checkCanFence(node, flags.confirmOff === true)
    const isDryRun = flags.dryRun === true
    const isChanged = !isOutOfService(node)
    await fenceNode(client, node, { dryRun: isDryRun })
    const result = { node: name, isChanged, isDryRun }
    const state = 'out of service: its pods are removed, and its volumes are detached without its confirmation'
    deps.write(await formatOutput(flags.output, result, () => describeChange(name, state, result)))
  })

export const runUnfence = (name: string, flags: NodeFlags, deps: ProgramDeps) =>
  withCluster(flags, deps, async ({ client, snapshot }) => {
    const node = findNode(snapshot, name)
    const isDryRun = flags.dryRun === true
    const isChanged = isFenced(node)
    if (isChanged) checkCanUnfence(node, snapshot)
    await unfenceNode(client, node, { dryRun: isDryRun })
    const result = { node: name, isChanged, isDryRun }
    deps.write(await formatOutput(flags.output, result, () => describeChange(name, 'back in service', result)))
  })

export interface ForgetFlags extends NodeFlags {
  readonly yes?: boolean
  readonly deleteVolumes?: boolean
  readonly timeoutMs: number
}

export const runForget = (name: string, flags: ForgetFlags, deps: ProgramDeps) =>
  withCluster(flags, deps, async ({ client, snapshot }) => {
    const { clock, signal } = deps
    const node = findNode(snapshot, name)
    const deletesVolumes = flags.deleteVolumes === true
    const plan = planForget(node, snapshot)
    const text = formatForgetPlan(plan, deletesVolumes)
    if (flags.dryRun) {
      const reason = refusalToFence(node)
      const result = { ...plan, isDryRun: true, ...(reason === undefined ? {} : { reason }) }
      deps.write(
        await formatOutput(flags.output, result, () =>
          reason === undefined ? text : `${text}Without --dry-run, nothing would be removed. ${reason}\n`,
        ),
      )
      if (reason !== undefined) throw new ExitError(2)
      return
    }
    checkCanFence(node, true)
    if (flags.output === 'text') deps.write(text)
    if (!flags.yes)
      await confirm({
        withoutTerminal: 'Nothing was removed: confirm with --yes, or run the command on a terminal.',
        declined: 'Nothing was removed.',
      })
    const options = { timeoutMs: flags.timeoutMs, deletesVolumes }
    const result = await forgetNode(node, plan, options, { client, clock, signal })
    deps.write(await formatOutput(flags.output, { ...plan, ...result }, () => describeForget(name, result)))
    if (result.remainingAttachments.length > 0) throw new ExitError(1)
  })

function describeForget(name: string, { isComplete, remainingAttachments }: ForgetResult): string {
  if (remainingAttachments.length > 0)
    return `Node ${name} is kept until its drivers have detached ${formatNames(remainingAttachments)}. Run the command again.\n`
  return isComplete
    ? `Node ${name} is forgotten.\n`
    : `Node ${name} is forgotten. Its volumes are kept, although no node can reach them. To remove them, delete their claims, the PersistentVolumes and their finalizers.\n`
}
