// Checks that CSI drivers are registered on nodes: each node has a CSINode with an entry for each driver that runs on it.
// Also reports each CSINode whose node does not exist.
import { csiDriverKind } from '../../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { formatNames } from '../../../format-names.ts'
import type { Check, Finding } from '../check.ts'

export const csiNodes: Check = {
  id: 'csi-nodes',
  title: 'Drivers on nodes',
  async run({ cluster, driver: selectedDriver }) {
    const [nodes, registrations, drivers] = await Promise.all([
      cluster.list(nodeKind),
      cluster.list(csiNodeKind),
      cluster.list(csiDriverKind),
    ])
    const nodeNames = nodes.map(({ metadata }) => metadata.name)
    const nodesOf = (driver: string) =>
      registrations
        .filter(({ spec }) => spec.drivers.some(({ name }) => name === driver))
        .map(({ metadata }) => metadata.name)
    const names = selectedDriver ? [selectedDriver] : drivers.map(({ metadata }) => metadata.name)
    const findings = names.flatMap((driver): Finding[] => {
      const registeredNodes = new Set(nodesOf(driver))
      const missingNodes = nodeNames.filter((name) => !registeredNodes.has(name))
      if (missingNodes.length === 0) return [describeRegistered(driver, nodeNames.length)]
      // Without --driver, a driver that runs on some of the nodes is assumed to be meant for these.
      if (!selectedDriver && missingNodes.length < nodeNames.length)
        return [describeRegistered(driver, nodeNames.length - missingNodes.length)]
      return [describeUnregistered(driver, missingNodes, nodeNames.length)]
    })
    const orphans = registrations.filter(({ metadata }) => !nodeNames.includes(metadata.name))
    return [...findings, ...orphans.map(({ metadata }) => describeOrphan(metadata.name))]
  },
}

const describeRegistered = (driver: string, count: number): Finding => ({
  status: 'ok',
  message: `${driver} is registered on ${count} ${count === 1 ? 'node' : 'nodes'}.`,
})

const describeUnregistered = (driver: string, missingNodes: readonly string[], nodeCount: number): Finding => ({
  status: 'warning',
  object: `CSIDriver ${driver}`,
  message: `It is not registered on ${missingNodes.length} of ${nodeCount} nodes: ${formatNames(missingNodes)}. Its volumes cannot be used there.`,
  remedy: `kubectl get csinode ${missingNodes[0]} -o yaml`,
})

const describeOrphan = (name: string): Finding => ({
  status: 'warning',
  object: `CSINode ${name}`,
  message: 'There is no node with this name.',
  remedy: `kubectl delete csinode ${name}`,
})
