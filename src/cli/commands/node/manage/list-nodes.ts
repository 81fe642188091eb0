// Lists nodes with what an operator needs to know before changing one: state, topology conditions, pods, attached and local
// volumes, and drivers. Pure.
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { formatTable } from '../../../output/table.ts'
import { findLocalVolumes, findPods, type NodeState, readNodeState } from './node-facts.ts'

const TOPOLOGY_CONDITIONS: readonly string[] = ['TopologyMismatch', 'TopologyConflict']

export interface ListedNode {
  readonly name: string
  readonly state: NodeState
  readonly isCordoned: boolean
  /** The conditions about the topology that are True. */
  readonly topologyConditions: readonly string[]
  readonly pods: number
  readonly attachedVolumes: number
  /** Volumes that no other node can reach. */
  readonly localVolumes: number
  readonly drivers: readonly string[]
}

export function listNodes(snapshot: Snapshot): ListedNode[] {
  return [...snapshot.nodes]
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name))
    .map((node) => {
      const { name } = node.metadata
      const csiNode = snapshot.csiNodes.find(({ metadata }) => metadata.name === name)
      return {
        name,
        state: readNodeState(node),
        isCordoned: node.spec?.unschedulable === true,
        topologyConditions: (node.status?.conditions ?? [])
          .filter(({ type, status }) => TOPOLOGY_CONDITIONS.includes(type) && status === 'True')
          .map(({ type }) => type),
        pods: findPods(snapshot, name).length,
        attachedVolumes: snapshot.attachments.filter(({ spec, status }) => spec.nodeName === name && status?.attached)
          .length,
        localVolumes: findLocalVolumes(snapshot, node).length,
        drivers: (csiNode?.spec.drivers ?? []).map((driver) => driver.name),
      }
    })
}

export const formatNodes = (nodes: readonly ListedNode[]): string =>
  formatTable(
    [
      ['NAME', 'STATE', 'PODS', 'ATTACHED', 'LOCAL', 'DRIVERS'],
      ...nodes.map(({ name, state, isCordoned, topologyConditions, pods, attachedVolumes, localVolumes, drivers }) => [
        name,
        [state, ...(isCordoned ? ['Cordoned'] : []), ...topologyConditions].join(','),
        String(pods),
        String(attachedVolumes),
        String(localVolumes),
        drivers.join(',') || 'none',
      ]),
    ],
    { rightAligned: new Set([2, 3, 4]) },
  )
