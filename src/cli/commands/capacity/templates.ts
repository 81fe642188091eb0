// Runs `stowage capacity templates publish`, `list` and `remove`.
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { formatLabelSelector, labelSelectorFromObject } from '../../../api/selectors.ts'
import { isNotFound } from '../../../api/status-error.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import { groupLike, type NodeGroup, readSnapshot, renameGroup, type Snapshot } from '../../../diagnosis/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { readNodeGroup } from '../../manifests/node-group-file.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { requireExistingNode } from '../../require-existing-node.ts'
import { checkGroup, planTemplates, TEMPLATE_LABEL, type TemplatePlan } from './plan-templates.ts'

interface TemplateFlags {
  readonly kubeconfig?: string
  readonly output: OutputFormat
}

export interface PublishFlags extends TemplateFlags {
  readonly nodeGroup?: string
  readonly group?: string
  readonly like?: string
  readonly namespace: string
  readonly dryRun?: boolean
}

interface TemplateDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
}

const TIMEOUT_MS = 10_000
const USER_AGENT = 'stowage-capacity'

/** Returns the command's output. */
export const publishTemplates = (flags: PublishFlags, deps: TemplateDeps): Promise<string> =>
  withClient(flags, deps, (client) => publishWith(client, flags, deps))

/** Lists nodes, their drivers, volumes, classes and capacity, and writes only capacity objects. */
export async function publishWith(client: Client, flags: PublishFlags, deps: TemplateDeps): Promise<string> {
  const { namespace, dryRun = false, output } = flags
  const snapshot = await readSnapshot({
    client,
    lists: ['nodes', 'csiNodes', 'volumes', 'classes', 'capacities'],
    nowMs: deps.clock.nowMs(),
    signal: deps.signal,
  })
  requirePermissions(snapshot)
  const group = await findGroup(flags, snapshot)
  checkGroup(group, snapshot)
  const existing = snapshot.capacities.filter(({ metadata }) => metadata.labels?.[TEMPLATE_LABEL] === group.name)
  const plan = planTemplates({ group, namespace, existing })
  if (!dryRun) await applyPlan(client, plan)
  const labels = labelsOf(group)
  const changes = [
    ...plan.create.map((object) => describeChange('create', object)),
    ...plan.update.map(({ template }) => describeChange('update', template)),
    ...plan.delete.map((object) => describeChange('delete', object)),
    ...plan.unchanged.map((object) => describeChange('keep', object)),
  ]
  const lines = changes.map(
    ({ change, ...row }) => `${dryRun ? `would ${change}` : PAST_TENSES[change]} ${formatRow(row)}\n`,
  )
  const labelText = Object.entries(labels).map(([key, value]) => `  ${key}: ${value}\n`)
  const text = `${lines.join('')}The node template of the autoscaler needs these labels:\n${labelText.join('')}`
  return formatOutput(output, { group: group.name, dryRun, labels, changes }, () => text)
}

export const listTemplates = (flags: TemplateFlags, deps: TemplateDeps): Promise<string> =>
  withClient(flags, deps, (client) => listWith(client, flags))

export async function listWith(client: Pick<Client, 'list'>, { output }: TemplateFlags): Promise<string> {
  const { items } = await client.list(csiStorageCapacityKind, { labelSelector: TEMPLATE_LABEL })
  const templates = items.map(describeObject)
  return formatOutput(output, { templates }, () =>
    templates.length === 0
      ? 'There are no templates. Publish one with: stowage capacity templates publish --group NAME --like NODE\n'
      : templates.map((row) => `${formatRow(row)}\n`).join(''),
  )
}

interface RemoveFlags extends TemplateFlags {
  readonly dryRun?: boolean
}

export const removeTemplates = (group: string, flags: RemoveFlags, deps: TemplateDeps): Promise<string> =>
  withClient(flags, deps, (client) => removeWith(client, group, flags))

export async function removeWith(
  client: Pick<Client, 'list' | 'delete'>,
  group: string,
  { output, dryRun = false }: RemoveFlags,
): Promise<string> {
  const { items } = await client.list(csiStorageCapacityKind, { labelSelector: `${TEMPLATE_LABEL}=${group}` })
  if (items.length === 0) throw new UsageError(`The group ${group} has no templates.`)
  if (!dryRun) for (const object of items) await deleteObject(client, object)
  const changes = items.map((object) => describeChange('delete', object))
  return formatOutput(output, { group, dryRun, changes }, () =>
    changes.map((row) => `${dryRun ? 'would delete' : PAST_TENSES.delete} ${formatRow(row)}\n`).join(''),
  )
}

async function findGroup(flags: PublishFlags, snapshot: Snapshot): Promise<NodeGroup> {
  const { nodeGroup, group, like, namespace } = flags
  if (nodeGroup !== undefined) {
    if (group !== undefined || like !== undefined)
      throw new UsageError('Set --node-group, or --group and --like, not both.')
    return readNodeGroup(nodeGroup, { namespace, nowMs: snapshot.nowMs })
  }
  if (group === undefined || like === undefined)
    throw new UsageError('Set --node-group FILE, or --group NAME and --like NODE.')
  const [problem] = dns1123SubdomainProblems(group)
  if (problem !== undefined) throw new UsageError(`--group ${JSON.stringify(group)}: ${problem}`)
  return renameGroup(groupLike(requireExistingNode(like, snapshot), snapshot)!, group)
}

function requirePermissions({ missingRules }: Snapshot): void {
  if (missingRules.length === 0) return
  throw new UsageError(
    `The command needs permission to ${missingRules.map(({ rule }) => rule).join(', ')}: ` +
      'stowage rbac print --component capacity-templates prints a role that grants it.',
  )
}

/** Deletes first: a changed topology replaces the object, and the new one may have the same name. */
async function applyPlan(client: Client, plan: TemplatePlan): Promise<void> {
  for (const object of plan.delete) await deleteObject(client, object)
  for (const { object, template } of plan.update) {
    const { name, namespace } = object.metadata
    const { capacity = null, maximumVolumeSize = null } = template
    const body = { capacity, maximumVolumeSize }
    await client.patch(csiStorageCapacityKind, { namespace, name }, { type: 'merge', body })
  }
  const keptNames = new Set(
    [...plan.unchanged, ...plan.update.map(({ object }) => object)].map(({ metadata }) => metadata.name),
  )
  for (const object of plan.create) {
    let name = object.metadata.name!
    for (let suffix = 2; keptNames.has(name); suffix++) name = `${object.metadata.name}-${suffix}`
    keptNames.add(name)
    await client.create(csiStorageCapacityKind, { ...object, metadata: { ...object.metadata, name } })
  }
}

async function deleteObject(client: Pick<Client, 'delete'>, { metadata }: Readonly<CSIStorageCapacity>): Promise<void> {
  const { namespace, name = '' } = metadata
  try {
    await client.delete(csiStorageCapacityKind, { namespace, name })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

interface TemplateRow {
  readonly group: string
  readonly class: string
  readonly topology: string
  readonly capacity: string
}

const describeObject = ({
  metadata,
  storageClassName,
  nodeTopology,
  capacity,
}: Readonly<CSIStorageCapacity>): TemplateRow => ({
  group: metadata.labels?.[TEMPLATE_LABEL] ?? '',
  class: storageClassName,
  topology: formatLabelSelector(labelSelectorFromObject(nodeTopology)),
  capacity: capacity ?? '',
})

const PAST_TENSES = { create: 'created', update: 'updated', delete: 'deleted', keep: 'kept' } as const

const describeChange = (change: keyof typeof PAST_TENSES, object: Readonly<CSIStorageCapacity>) => ({
  change,
  ...describeObject(object),
})

const formatRow = (row: TemplateRow): string =>
  `${row.group}: ${row.capacity || 'unknown capacity'} of class ${row.class} for nodes with ${row.topology}`

/** Returns the labels by which the capacity objects select the group's node. */
function labelsOf({ node, capacities }: NodeGroup): Record<string, string> {
  const keys = new Set(capacities.flatMap(({ nodeTopology }) => Object.keys(nodeTopology?.matchLabels ?? {})))
  return Object.fromEntries(Object.entries(node.metadata.labels ?? {}).filter(([key]) => keys.has(key)))
}

async function withClient(
  { kubeconfig }: TemplateFlags,
  deps: TemplateDeps,
  run: (client: Client) => Promise<string>,
): Promise<string> {
  const { connection } = await loadClientConfig(kubeconfig, deps)
  const client = httpClient({ connection, clock: deps.clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT })
  try {
    return await run(client)
  } finally {
    client.close()
  }
}
