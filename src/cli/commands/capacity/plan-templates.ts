// Plans the capacity objects of a node group: which to create, update and delete, so that the group has exactly those of its
// template. Pure.
import type { Stored } from '../../../api/kind.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { labelSelectorFromObject, matchesLabels } from '../../../api/selectors.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { findSimilarNames, type NodeGroup, type Snapshot } from '../../../diagnosis/index.ts'

type Capacity = Readonly<Stored<CSIStorageCapacity>>

/**
 * Marks the objects of this command; the value is the name of the group. The controllers that report and clean up capacity ignore
 * these objects.
 */
export const TEMPLATE_LABEL = 'capacity.stowage.dev/template'

export interface TemplatePlan {
  readonly create: readonly CSIStorageCapacity[]
  readonly update: readonly { readonly object: Capacity; readonly template: CSIStorageCapacity }[]
  readonly delete: readonly Capacity[]
  readonly unchanged: readonly Capacity[]
}

interface PlanInput {
  readonly group: NodeGroup
  readonly namespace: string
  /** The objects of the group that exist. */
  readonly existing: readonly Capacity[]
}

/** Class and topology of an object cannot change, so an object is updated only if both are equal. */
export function planTemplates({ group, namespace, existing }: PlanInput): TemplatePlan {
  const templates = group.capacities.map((capacity, index) => buildTemplate(capacity, group, namespace, index))
  const identityOf = ({ metadata, storageClassName, nodeTopology }: CSIStorageCapacity) =>
    JSON.stringify([metadata.namespace, storageClassName, nodeTopology?.matchLabels, nodeTopology?.matchExpressions])
  const remaining = new Map(existing.map((object) => [identityOf(object), object]))
  const plan = { create: [], update: [], unchanged: [] } as {
    create: CSIStorageCapacity[]
    update: { object: Capacity; template: CSIStorageCapacity }[]
    unchanged: Capacity[]
  }
  for (const template of templates) {
    const object = remaining.get(identityOf(template))
    remaining.delete(identityOf(template))
    if (!object) plan.create.push(template)
    else if (object.capacity === template.capacity && object.maximumVolumeSize === template.maximumVolumeSize)
      plan.unchanged.push(object)
    else plan.update.push({ object, template })
  }
  const keptObjects = new Set([...plan.unchanged, ...plan.update.map(({ object }) => object)])
  return { ...plan, delete: existing.filter((object) => !keptObjects.has(object)) }
}

function buildTemplate(
  { storageClassName, nodeTopology, capacity, maximumVolumeSize }: Capacity,
  group: NodeGroup,
  namespace: string,
  index: number,
): CSIStorageCapacity {
  return {
    metadata: { name: `template-${group.name}-${index + 1}`, namespace, labels: { [TEMPLATE_LABEL]: group.name } },
    storageClassName,
    nodeTopology,
    ...(capacity === undefined ? {} : { capacity }),
    ...(maximumVolumeSize === undefined ? {} : { maximumVolumeSize }),
  }
}

/**
 * Throws a UsageError if the group has no capacity, if its class does not exist, if an autoscaler would not find the capacity
 * by the labels of the group's node, or if the scheduler would use it for an existing node.
 */
export function checkGroup({ name, node, capacities }: NodeGroup, { nodes, classes }: Snapshot): void {
  if (capacities.length === 0)
    throw new UsageError(`The group ${name} has no CSIStorageCapacity for its own nodes: there is nothing to publish.`)
  const classNames = classes.map(({ metadata }) => metadata.name)
  for (const { storageClassName, nodeTopology } of capacities) {
    if (!classNames.includes(storageClassName)) {
      const similar = findSimilarNames(storageClassName, classNames)
      const hint = similar.length > 0 ? ` Similar names: ${similar.join(', ')}.` : ''
      throw new UsageError(`The class ${storageClassName} of the group ${name} does not exist.${hint}`)
    }
    const selector = labelSelectorFromObject(nodeTopology)
    const topology = JSON.stringify(nodeTopology?.matchLabels ?? {})
    if (!matchesLabels(selector, node.metadata.labels))
      throw new UsageError(
        `The topology ${topology} does not select the Node ${name} of the group: add the label to it.`,
      )
    const selected = nodes.find(({ metadata }) => matchesLabels(selector, metadata.labels))
    if (selected)
      throw new UsageError(
        `The topology ${topology} of the group ${name} also selects the existing node ${selected.metadata.name}, for which the ` +
          'scheduler would use the capacity. Use a label value that no node has.',
      )
  }
}
