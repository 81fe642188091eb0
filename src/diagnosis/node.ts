// Diagnoses a node: its health, the CSI drivers on it with their volume limits and topology, and the capacity that they report.
import type { Stored } from '../api/kind.ts'
import type { Node } from '../api/kinds/node/node-schema.ts'
import { labelSelectorFromObject, matchesLabels } from '../api/selectors.ts'
import { TOPOLOGY_MISMATCH } from '../controllers/node-topology/index.ts'
import { missingTopologyLabels } from '../volumes/topology-labels.ts'
import { ageSeconds, type Cluster } from './cluster.ts'
import { type Diagnosis, fix, worstState } from './diagnosis.ts'
import { diagnoseNodeHealth } from './node-health.ts'

export function diagnoseNode(node: Readonly<Stored<Node>>, cluster: Cluster): Diagnosis {
  const health = diagnoseNodeHealth(node.metadata.name, cluster)
  const children = [
    ...diagnoseDrivers(node, cluster),
    ...describeTopologyConditions(node),
    ...describeCapacity(node, cluster),
  ]
  const state = health.state === 'ready' ? worstState(children.map((child) => child.state)) : health.state
  const cause =
    health.state === 'ready' ? children.find((child) => child.state === state && state !== 'ready') : undefined
  return {
    ...health,
    state,
    ...(cause ? { reason: cause.reason, message: `${health.message}; a driver on the node is not ready` } : {}),
    ...(children.length > 0 ? { children } : {}),
  }
}

function diagnoseDrivers({ metadata }: Readonly<Stored<Node>>, cluster: Cluster): Diagnosis[] {
  const registered = cluster.caches.csiNodes.get(metadata.name)?.spec.drivers ?? []
  const attached = cluster.snapshot.attachments.filter(({ spec }) => spec.nodeName === metadata.name)
  const drivers = registered.map(({ name, allocatable, topologyKeys }): Diagnosis => {
    const missingKeys = missingTopologyLabels({ topologyKeys }, metadata.labels)
    if (missingKeys.length > 0) return describeMissingLabels(metadata.name, name, missingKeys)
    const used = attached.filter(({ spec }) => spec.attacher === name).length
    const limit = allocatable?.count
    const isFull = limit !== undefined && used >= limit
    return {
      subject: { kind: 'CSIDriver', name },
      state: 'ready',
      reason: isFull ? 'VolumeLimitReached' : 'Registered',
      message:
        limit === undefined
          ? 'registered, without a volume limit'
          : `registered; ${used} of at most ${limit} volumes are attached`,
      numbers: { attached: used, ...(limit === undefined ? {} : { limit }) },
    }
  })
  const missing = attached.filter(({ spec }) => !registered.some(({ name }) => name === spec.attacher))
  const missingNames = [...new Set(missing.map(({ spec }) => spec.attacher))]
  return [
    ...drivers,
    ...missingNames.map(
      (name): Diagnosis => ({
        subject: { kind: 'CSIDriver', name },
        state: 'failed',
        reason: 'DriverNotRegistered',
        message: `the driver ${name} is not registered on the node, but its volumes are attached`,
        numbers: { attached: missing.filter(({ spec }) => spec.attacher === name).length },
        fixes: [fix(`run the driver ${name} on the node`, `kubectl get csinode ${metadata.name} -o yaml`)],
      }),
    ),
  ]
}

const describeMissingLabels = (node: string, driver: string, keys: readonly string[]): Diagnosis => ({
  subject: { kind: 'CSIDriver', name: driver },
  state: 'failed',
  reason: 'TopologyLabelsMissing',
  message: `registered, but the node lacks the label ${keys.join(', ')} of its topology: no volume is provisioned for the node`,
  fixes: [
    fix('restart the driver on the node, which sets the label again'),
    fix('or set the label', `kubectl label node ${node} ${keys.map((key) => `${key}=VALUE`).join(' ')}`),
  ],
})

/** Describes the conditions about topology: the agent rejected a driver, or volumes require labels that the driver no longer uses. */
function describeTopologyConditions({ metadata, status }: Readonly<Stored<Node>>): Diagnosis[] {
  const subject = { kind: 'Node', name: metadata.name }
  return (status?.conditions ?? []).flatMap(({ type, status: value, reason = '', message = '' }): Diagnosis[] => {
    if (value !== 'True') return []
    if (type === 'TopologyConflict')
      return [{ subject, state: 'failed', reason, message: `the agent rejected a driver: ${message}` }]
    return type === TOPOLOGY_MISMATCH && reason === 'KeysChanged' ? [{ subject, state: 'ready', reason, message }] : []
  })
}

function describeCapacity({ metadata }: Readonly<Stored<Node>>, { snapshot }: Cluster): Diagnosis[] {
  return snapshot.capacities
    .filter(({ nodeTopology }) => nodeTopology && selects(nodeTopology, metadata.labels ?? {}))
    .map((report): Diagnosis => {
      const { storageClassName, capacity, maximumVolumeSize } = report
      const times = (report.metadata.managedFields ?? []).map(({ time }) => time ?? '').sort()
      const age = ageSeconds(times.at(-1) || report.metadata.creationTimestamp, snapshot.nowMs)
      const { namespace = '', name } = report.metadata
      return {
        subject: { kind: 'CSIStorageCapacity', namespace, name },
        state: 'ready',
        reason: 'CapacityReported',
        message: `${capacity ?? 'an unknown amount'} is free for the class ${storageClassName}`,
        numbers: {
          class: storageClassName,
          ...(capacity === undefined ? {} : { capacity }),
          ...(maximumVolumeSize === undefined ? {} : { maximumVolumeSize }),
          ...(age === undefined ? {} : { reportAgeSeconds: age }),
        },
      }
    })
}

function selects(nodeTopology: object, labels: Readonly<Record<string, string>>): boolean {
  try {
    return matchesLabels(labelSelectorFromObject(nodeTopology), labels)
  } catch {
    return false // the selector is invalid
  }
}
