// Finds the nodes from which a volume can be reached. For a node affinity with `In` requirements, an index of the node labels
// avoids comparing the volume with every node.
import type { Stored } from '../../../api/kind.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'

/** Returns undefined for a volume without node affinity, which every node can reach. */
export type NodesOfVolume = (volume: Readonly<PersistentVolume>) => readonly string[] | undefined

type StoredNode = Readonly<Stored<Node>>

export function createNodesOfVolume(nodes: readonly StoredNode[]): NodesOfVolume {
  const nodesByLabel = new Map<string, StoredNode[]>()
  for (const node of nodes) {
    for (const [key, value] of Object.entries(node.metadata.labels ?? {})) {
      const label = `${key}=${value}`
      const labelled = nodesByLabel.get(label)
      if (labelled) labelled.push(node)
      else nodesByLabel.set(label, [node])
    }
  }

  /** Returns the nodes that match one `In` requirement of any term, or all nodes if a term has no such requirement. */
  function listCandidates(volume: Readonly<PersistentVolume>): readonly StoredNode[] {
    const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
    const candidates = new Set<StoredNode>()
    for (const { matchExpressions = [] } of terms) {
      const requirement = matchExpressions.find(({ operator }) => operator === 'In')
      if (!requirement) return nodes
      for (const value of requirement.values ?? [])
        for (const node of nodesByLabel.get(`${requirement.key}=${value}`) ?? []) candidates.add(node)
    }
    return [...candidates]
  }

  return (volume) => {
    if (!volume.spec?.nodeAffinity?.required) return undefined
    return listCandidates(volume)
      .filter(({ metadata }) => isReachableFrom(volume, { name: metadata.name, labels: metadata.labels ?? {} }))
      .map(({ metadata }) => metadata.name)
  }
}
