// Checks that nodes have the labels of the topology keys that their drivers have registered, and that a driver's nodes
// have the same keys. Without the labels, no volume can be provisioned for the node.
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import type { Check, Finding } from '../check.ts'

export const topology: Check = {
  id: 'topology',
  title: 'Topology',
  async run({ cluster, driver: selectedDriver }) {
    const [nodes, csiNodes] = await Promise.all([cluster.list(nodeKind), cluster.list(csiNodeKind)])
    const nodesByName = new Map(nodes.map((node) => [node.metadata.name, node]))
    const registrations = csiNodes.flatMap(({ metadata, spec }) =>
      spec.drivers
        .filter(({ name }) => selectedDriver === undefined || name === selectedDriver)
        .map(({ name, topologyKeys = [] }) => ({ driver: name, node: metadata.name, keys: [...topologyKeys].sort() })),
    )
    if (registrations.length === 0) return []
    const findings = registrations.flatMap(({ driver, node, keys }): Finding[] => {
      const labels = nodesByName.get(node)?.metadata.labels
      const missingKeys = nodesByName.has(node) ? keys.filter((key) => labels?.[key] === undefined) : []
      return missingKeys.map((key) => describeMissingLabel(node, key, driver))
    })
    const keysByDriver = new Map<string, Map<string, string>>()
    for (const { driver, node, keys } of registrations) {
      const nodesByKeys = keysByDriver.get(driver) ?? new Map<string, string>()
      keysByDriver.set(driver, nodesByKeys.set(keys.join(', ') || 'none', node))
    }
    for (const [driver, nodesByKeys] of keysByDriver) {
      if (nodesByKeys.size > 1) findings.push(describeDifferentKeys(driver, nodesByKeys))
    }
    if (findings.length > 0) return findings
    const keys = [...new Set(registrations.flatMap((registration) => registration.keys))]
    const message =
      keys.length === 0
        ? 'No driver has topology keys: its volumes are accessible from every node.'
        : `Every node has the labels of its drivers: ${keys.join(', ')}.`
    return [{ status: 'ok', message }]
  },
}

const describeMissingLabel = (node: string, key: string, driver: string): Finding => ({
  status: 'error',
  object: `Node ${node}`,
  message: `It has no label ${key}, which ${driver} has registered as a topology key: no volume can be provisioned for the node.`,
  remedy: `Restart the driver on the node, which sets the label again, or set it: kubectl label node ${node} ${key}=VALUE`,
})

function describeDifferentKeys(driver: string, nodesByKeys: ReadonlyMap<string, string>): Finding {
  const examples = [...nodesByKeys].map(([keys, node]) => `${node} has ${keys}`)
  return {
    status: 'warning',
    object: `CSIDriver ${driver}`,
    message: `Its nodes have different topology keys: ${examples.join('; ')}.`,
    remedy: 'Run the same version of the driver, with the same configuration, on every node.',
  }
}
