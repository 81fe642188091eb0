// Implements NodeTopologies (topology.ts) for all nodes, from caches of Nodes and CSINodes, and for the single node of a
// per-node provisioner, from NodeGetInfo of its driver.

import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import type { Random } from '../../../base/clock.ts'
import type { Cache } from '../../../runtime/index.ts'
import { type NodeTopologies, sortTerms, type Term, termOf } from './topology.ts'

export interface ClusterTopologiesOptions {
  readonly driverName: string
  readonly nodes: Cache<Node>
  readonly csiNodes: Cache<CSINode>
  readonly random: Random
}

/** Caches the terms of all nodes until a node is added or deleted or its labels change. */
export function clusterTopologies({ driverName, nodes, csiNodes, random }: ClusterTopologiesOptions): NodeTopologies {
  const termsByKeys = new Map<string, readonly Term[]>()
  const clearTerms = () => termsByKeys.clear()
  nodes.subscribe({
    added: clearTerms,
    deleted: clearTerms,
    updated: (current, previous) => {
      // Compare references first: heartbeats are frequent and do not change labels.
      if (current.metadata.labels !== previous.metadata.labels && !haveSameLabels(current, previous)) clearTerms()
    },
  })
  const keysOnNode = (node: Readonly<CSINode>) =>
    node.spec.drivers.find(({ name }) => name === driverName)?.topologyKeys
  let csiNodesWithKeys: readonly Readonly<CSINode>[] | undefined
  const clearKeys = () => {
    csiNodesWithKeys = undefined
  }
  csiNodes.subscribe({ added: clearKeys, updated: clearKeys, deleted: clearKeys })
  return {
    keysOf: (name) => {
      const node = csiNodes.get({ name })
      return node && (keysOnNode(node) ?? [])
    },
    labelsOf: (name) => {
      const node = nodes.get({ name })
      return node && (node.metadata.labels ?? {})
    },
    keysOfAnyNode() {
      csiNodesWithKeys ??= csiNodes.list().filter((node) => (keysOnNode(node)?.length ?? 0) > 0)
      const node = csiNodesWithKeys[Math.floor(random() * csiNodesWithKeys.length)]
      return (node && keysOnNode(node)) ?? []
    },
    termsOf(keys) {
      const cacheKey = JSON.stringify([...keys].sort())
      const cachedTerms = termsByKeys.get(cacheKey)
      if (cachedTerms) return cachedTerms
      const nodeTerms = nodes.list().map(({ metadata }) => termOf(metadata.labels ?? {}, keys))
      const terms = sortTerms(nodeTerms.filter((term) => term !== undefined && term.length > 0) as Term[])
      if (termsByKeys.size >= KEY_SETS_MAX) termsByKeys.clear()
      termsByKeys.set(cacheKey, terms)
      return terms
    },
  }
}

/** Beyond this number of key sets, all terms are recomputed. */
const KEY_SETS_MAX = 16

const haveSameLabels = (a: Readonly<Node>, b: Readonly<Node>): boolean => {
  const [labels, otherLabels] = [Object.entries(a.metadata.labels ?? {}), b.metadata.labels ?? {}]
  return labels.length === Object.keys(otherLabels).length && labels.every(([key, value]) => otherLabels[key] === value)
}

/** Returns the topology of the only node that the provisioner serves. */
export function singleNodeTopology(name: string, segments: Readonly<Record<string, string>>): NodeTopologies {
  const keys = Object.keys(segments)
  return {
    keysOf: (node) => (node === name ? keys : undefined),
    labelsOf: (node) => (node === name ? segments : undefined),
    keysOfAnyNode: () => keys,
    termsOf: (requestedKeys) => {
      const term = termOf(segments, requestedKeys)
      return term && term.length > 0 ? [term] : []
    },
  }
}
