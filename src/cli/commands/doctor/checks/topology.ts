// Checks that nodes have the labels of the topology keys that their drivers have registered, and that a driver's nodes
// have the same keys. Without the labels, no volume can be provisioned for the node. Without --driver, also reports the
// conditions of nodes whose agent rejected a driver, or whose drivers no longer register the keys by which volumes are located.
import type { Stored } from '../../../../api/kind.ts'
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import type { Node } from '../../../../api/kinds/node/node-schema.ts'
import { TOPOLOGY_MISMATCH } from '../../../../controllers/node-topology/index.ts'
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
    const conditionFindings = selectedDriver === undefined ? nodes.flatMap(describeConditions) : []
    if (registrations.length === 0) return conditionFindings
    const findings = registrations.flatMap(({ driver, node, keys }): Finding[] => {
      const labels = nodesByName.get(node)?.metadata.labels
      const missingKeys = nodesByName.has(node) ? keys.filter((key) => labels?.[key] === undefined) : []
      return missingKeys.map((key) => describeMissingLabel(node, key, driver))
    })
    findings.push(...conditionFindings)
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
        ? `No topology keys are registered, so every volume of ${selectedDriver ?? 'a CSI driver'} is accessible from every node.`
        : `Every node has the labels of its drivers: ${keys.join(', ')}.`
    return [{ status: 'ok', message }]
  },
}

/** Ignores the condition for missing labels: the check compares the labels themselves, which needs no controller. */
function describeConditions({ metadata, status }: Readonly<Stored<Node>>): Finding[] {
  const object = `Node ${metadata.name}`
  return (status?.conditions ?? []).flatMap(({ type, status: value, reason, message = '' }): Finding[] => {
    if (value !== 'True') return []
    if (type === 'TopologyConflict') {
      return [{ status: 'error', object, message: `Its agent rejected a driver: ${message}.` }] // the message has the remedy
    }
    if (type !== TOPOLOGY_MISMATCH || reason !== 'KeysChanged') return []
    const remedy = 'Set or keep the labels until these volumes are deleted, or let the driver register the keys again.'
    return [{ status: 'warning', object, message: `Topology keys have changed: ${message}.`, remedy }]
  })
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
