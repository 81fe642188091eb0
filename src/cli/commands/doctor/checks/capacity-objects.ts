// Checks for CSIStorageCapacity objects that are no longer updated: those of a deleted class, of a topology segment without
// nodes, and of a node that no longer runs the driver. The scheduler may still count the capacity.
import type { Stored } from '../../../../api/kind.ts'
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { storageClassKind } from '../../../../api/kinds/storage-class/storage-class.ts'
import { formatLabelSelector, labelSelectorFromObject, matchesLabels } from '../../../../api/selectors.ts'
import {
  DRIVER_NAME_LABEL,
  MANAGED_BY_LABEL,
  managedBy,
  parseManagedBy,
} from '../../../../controllers/capacity/index.ts'
import { TEMPLATE_LABEL } from '../../capacity/plan-templates.ts'
import type { Check, DoctorContext, Finding } from '../check.ts'

export const capacityObjects: Check = {
  id: 'capacity-objects',
  title: 'Capacity objects',
  async run(context) {
    const objects = await context.cluster.list(csiStorageCapacityKind)
    const selectedObjects = objects.filter(
      ({ metadata }) => context.driver === undefined || metadata.labels?.[DRIVER_NAME_LABEL] === context.driver,
    )
    if (selectedObjects.length === 0) return []
    const findProblem = await createProblemFinder(context)
    const findings = selectedObjects.flatMap((object): Finding[] => {
      const problem = findProblem(object)
      const { namespace = '', name } = object.metadata
      return problem === undefined
        ? []
        : [
            {
              status: 'warning',
              object: `CSIStorageCapacity ${namespace}/${name}`,
              message: `It is orphaned: ${problem}.`,
              remedy: `kubectl delete csistoragecapacity ${name} --namespace ${namespace}`,
            },
          ]
    })
    if (findings.length > 0) return findings
    const { length } = selectedObjects
    return [
      {
        status: 'ok',
        message: `${length} capacity ${length === 1 ? 'object has' : 'objects have'} a class and nodes.`,
      },
    ]
  },
}

type CapacityObject = Readonly<Stored<CSIStorageCapacity>>

/** Returns a function that returns why an object is orphaned, or undefined if it is not. */
async function createProblemFinder({
  cluster,
}: DoctorContext): Promise<(object: CapacityObject) => string | undefined> {
  const [classes, nodes, csiNodes] = await Promise.all([
    cluster.list(storageClassKind),
    cluster.list(nodeKind),
    cluster.list(csiNodeKind),
  ])
  const classNames = new Set(classes.map(({ metadata }) => metadata.name))
  const producers = new Set(
    csiNodes.flatMap(({ metadata, spec }) => spec.drivers.map(({ name }) => `${name} ${managedBy(metadata.name)}`)),
  )
  return ({ metadata, storageClassName, nodeTopology }) => {
    if (!classNames.has(storageClassName)) return `the StorageClass ${storageClassName} does not exist`
    const { [DRIVER_NAME_LABEL]: driver = '', [MANAGED_BY_LABEL]: producer = '' } = metadata.labels ?? {}
    const node = parseManagedBy(producer)
    if (driver && node && !producers.has(`${driver} ${producer}`)) {
      return node.mayBeHash
        ? `no node with the driver ${driver} has a producer ${producer}`
        : `the node ${node.name} does not run the driver ${driver}`
    }
    if (metadata.labels?.[TEMPLATE_LABEL] !== undefined) return undefined // of a node group that has no nodes yet
    const selector = labelSelectorFromObject(nodeTopology)
    if (nodeTopology && !nodes.some((candidate) => matchesLabels(selector, candidate.metadata.labels)))
      return `no node has the labels ${formatLabelSelector(selector) || 'of its topology'}`
    return undefined
  }
}
