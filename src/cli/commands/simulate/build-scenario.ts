// Applies a simulation's flags to a snapshot: replaced objects, removed and drained nodes, and the nodes to add.

import type { Stored } from '../../../api/kind.ts'
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import type { ResourceQuota } from '../../../api/kinds/resource-quota/resource-quota-schema.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { keyOfObject } from '../../../client/index.ts'
import { changeNodes, groupLike, type NodeGroup, type Scenario, type Snapshot } from '../../../diagnosis/index.ts'
import { SCHEDULER_NAMES } from '../../../scheduler/index.ts'
import { formatNames } from '../../format-names.ts'
import type { DecodeContext } from '../../manifests/decode-manifest.ts'
import { readNodeGroup } from '../../manifests/node-group-file.ts'
import { requireExistingNode } from '../../require-existing-node.ts'
import type { Override, SimulationInput } from './read-input.ts'

export interface ScenarioFlags {
  readonly addNodes?: number
  readonly like?: string
  readonly nodeGroup?: string
  readonly removeNode?: readonly string[]
  readonly drain?: readonly string[]
  readonly pending?: boolean
}

interface BuiltScenario {
  readonly scenario: Scenario
  readonly notes: readonly string[]
}

export async function buildScenario(
  original: Snapshot,
  input: SimulationInput,
  flags: ScenarioFlags,
  context: DecodeContext,
): Promise<BuiltScenario> {
  const { removeNode = [], drain = [], addNodes } = flags
  for (const name of [...removeNode, ...drain]) requireExistingNode(name, original)
  const overridden = input.overrides.reduce(replaceObject, original)
  const changed = changeNodes(overridden, { removed: new Set(removeNode), drained: new Set(drain) })
  const { snapshot, evictedPods } = changed
  const evictedKeys = new Set(evictedPods.map(keyOfObject))
  const pendingPods = flags.pending
    ? snapshot.pods.filter((pod) => isPending(pod) && !evictedKeys.has(keyOfObject(pod)))
    : []
  const unplacedPods = [...pendingPods, ...evictedPods]
  const group = await findGroup(flags, original, context)
  return {
    scenario: {
      snapshot,
      claims: input.claims,
      pods: input.pods,
      unplacedPods,
      ...(group ? { group } : {}),
      ...(addNodes === undefined ? {} : { nodeCount: addNodes }),
    },
    notes: collectNotes(changed, [...unplacedPods, ...input.pods], input),
  }
}

async function findGroup(
  { like, nodeGroup, addNodes }: ScenarioFlags,
  snapshot: Snapshot,
  context: DecodeContext,
): Promise<NodeGroup | undefined> {
  if (like !== undefined && nodeGroup !== undefined) throw new UsageError('Set --like or --node-group, not both.')
  if (nodeGroup !== undefined) return readNodeGroup(nodeGroup, context)
  if (like !== undefined) return groupLike(requireExistingNode(like, snapshot), snapshot)
  if (addNodes !== undefined) throw new UsageError('--add-nodes needs --like NODE or --node-group FILE.')
  return undefined
}

function replaceObject(snapshot: Snapshot, { list, object }: Override): Snapshot {
  const objects: readonly Readonly<Stored>[] = snapshot[list]
  const key = keyOfObject(object)
  const previous = objects.find((candidate) => keyOfObject(candidate) === key)
  const others = objects.filter((candidate) => candidate !== previous)
  const next = list === 'quotas' && previous ? withUsageOf(previous as Stored<ResourceQuota>, object) : object
  return { ...snapshot, [list]: [...others, next] }
}

/** Keeps the recorded usage of a replaced quota. The usage of keys that the status does not have is counted later. */
const withUsageOf = ({ status }: Readonly<Stored<ResourceQuota>>, quota: Readonly<Stored>): Readonly<Stored> =>
  ({ ...quota, status }) as Readonly<Stored>

const isPending = (pod: Snapshot['pods'][number]): boolean =>
  !pod.spec?.nodeName && !pod.metadata.deletionTimestamp && !hasTerminated(pod)

function collectNotes(
  { uncontrolledPods }: { readonly uncontrolledPods: readonly string[] },
  pods: Snapshot['pods'],
  { skipped }: SimulationInput,
): string[] {
  const schedulerNames = new Set(pods.map(({ spec }) => spec?.schedulerName ?? SCHEDULER_NAMES[0]))
  const foreignNames = [...schedulerNames].filter((name) => !(SCHEDULER_NAMES as readonly string[]).includes(name))
  return [
    ...(uncontrolledPods.length > 0
      ? [`No controller recreates these pods of removed or drained nodes: ${formatNames(uncontrolledPods)}.`]
      : []),
    ...(foreignNames.length > 0
      ? [`Pods of the scheduler ${formatNames(foreignNames)} are placed with the rules of the Stowage scheduler.`]
      : []),
    ...(skipped.length > 0 ? [`Objects that the simulation ignores: ${formatNames(skipped)}.`] : []),
  ]
}
