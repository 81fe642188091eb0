// The nodes as topology.ts reads them: all nodes, from watched Nodes and CSINodes, or the one node of a per-node
// provisioner, from NodeGetInfo of its driver.

import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import type { Random } from '../../../base/clock.ts'
import type { Cache } from '../../../runtime/index.ts'
import { type NodeTopologies, sortedTerms, type Term, termOf } from './topology.ts'

export interface ClusterTopologiesOptions {
  readonly driverName: string
  readonly nodes: Cache<Node>
  readonly csiNodes: Cache<CSINode>
  readonly random: Random
}

/** The terms of all nodes, computed once until a node changes. */
export function clusterTopologies({ driverName, nodes, csiNodes, random }: ClusterTopologiesOptions): NodeTopologies {
  const termsByKeys = new Map<string, readonly Term[]>()
  const forgetTerms = () => termsByKeys.clear()
  nodes.subscribe({
    added: forgetTerms,
    deleted: forgetTerms,
    updated: (next, old) => {
      // A heartbeat does not change labels, and shared objects keep the same reference.
      if (next.metadata.labels !== old.metadata.labels && !sameLabels(next, old)) forgetTerms()
    },
  })
  const keysOn = (node: Readonly<CSINode>) => node.spec.drivers.find(({ name }) => name === driverName)?.topologyKeys
  let withKeys: readonly Readonly<CSINode>[] | undefined
  const forgetKeys = () => {
    withKeys = undefined
  }
  csiNodes.subscribe({ added: forgetKeys, updated: forgetKeys, deleted: forgetKeys })
  return {
    keysOf: (name) => {
      const node = csiNodes.get({ name })
      return node && (keysOn(node) ?? [])
    },
    labelsOf: (name) => {
      const node = nodes.get({ name })
      return node && (node.metadata.labels ?? {})
    },
    someKeys() {
      withKeys ??= csiNodes.list().filter((node) => (keysOn(node)?.length ?? 0) > 0)
      const node = withKeys[Math.floor(random() * withKeys.length)]
      return (node && keysOn(node)) ?? []
    },
    termsOf(keys) {
      const id = JSON.stringify([...keys].sort())
      const known = termsByKeys.get(id)
      if (known) return known
      const places = nodes.list().map(({ metadata }) => termOf(metadata.labels ?? {}, keys))
      const terms = sortedTerms(places.filter((term) => term !== undefined && term.length > 0) as Term[])
      if (termsByKeys.size >= KEY_SETS_MAX) termsByKeys.clear()
      termsByKeys.set(id, terms)
      return terms
    },
  }
}

/** A driver has one set of keys, or two during an upgrade; beyond this number all are recomputed. */
const KEY_SETS_MAX = 16

const sameLabels = (a: Readonly<Node>, b: Readonly<Node>): boolean => {
  const [left, right] = [Object.entries(a.metadata.labels ?? {}), b.metadata.labels ?? {}]
  return left.length === Object.keys(right).length && left.every(([key, value]) => right[key] === value)
}

/** Only the node of this driver, with its topology. */
export function oneNodeTopology(name: string, segments: Readonly<Record<string, string>>): NodeTopologies {
  const keys = Object.keys(segments)
  return {
    keysOf: (node) => (node === name ? keys : undefined),
    labelsOf: (node) => (node === name ? segments : undefined),
    someKeys: () => keys,
    termsOf: (wanted) => {
      const term = termOf(segments, wanted)
      return term && term.length > 0 ? [term] : []
    },
  }
}
