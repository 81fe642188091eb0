// Builders and helpers for tests of plugins that need only a pod and a node.
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { NodeInfo } from '../cluster/node-info.ts'
import { podInfoOf } from '../cluster/pod-info.ts'
import type { Plugin } from '../framework/plugin.ts'

export function aNode({ name = 'n1', ...fields }: Partial<Node> & { name?: string } = {}): NodeInfo {
  const info = new NodeInfo(name)
  info.setNode({ ...fields, metadata: { name, ...fields.metadata } })
  return info
}

export const aPod = (spec: object = {}, name = 'p'): Pod => ({
  metadata: { namespace: 'default', name, uid: name },
  spec: { containers: [{ name: 'c' }], ...spec },
})

export const aPodWithRequests = (requests: Record<string, string>, name = 'p'): Pod =>
  aPod({ containers: [{ name: 'c', resources: { requests } }] }, name)

/** Returns the messages with which the plugin rejects the node. */
export function rejections(plugin: Plugin, pod: Pod, node: NodeInfo): readonly string[] {
  const result = plugin.preFilter(podInfoOf(pod))
  if (result.code === 'Skip') return []
  const status = result.code === 'Success' ? plugin.filter?.(result.state, node) : result
  return status?.reasons.map(({ message }) => message) ?? []
}

export function scores(plugin: Plugin, pod: Pod, nodes: readonly NodeInfo[]): readonly number[] | undefined {
  const result = plugin.preFilter(podInfoOf(pod))
  return result.code === 'Success' ? plugin.score?.(result.state, nodes) : undefined
}
