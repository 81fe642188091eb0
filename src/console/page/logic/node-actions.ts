// The writes that mark a lost node as out of service, so that its pods are removed and its volumes detached, and that remove the
// taint again. Also explains why one of them is not possible.
import { type NodeRow, OUT_OF_SERVICE } from '../rows/cluster.ts'

const VALUE = 'nodeshutdown'
const EFFECT = 'NoExecute'
const JSON_PATCH = 'application/json-patch+json'

type TaintedNode = Pick<NodeRow, 'name' | 'taints'>

const pathOf = ({ name }: TaintedNode): string => `/k8s/api/v1/nodes/${encodeURIComponent(name)}`

export function outOfServiceWrite(node: TaintedNode) {
  const taint = { key: OUT_OF_SERVICE, value: VALUE, effect: EFFECT }
  return {
    method: 'PATCH',
    path: pathOf(node),
    contentType: JSON_PATCH,
    body:
      node.taints.length === 0
        ? [{ op: 'add', path: '/spec/taints', value: [taint] }]
        : [{ op: 'add', path: '/spec/taints/-', value: taint }],
    command: `kubectl taint nodes ${node.name} ${OUT_OF_SERVICE}=${VALUE}:${EFFECT}`,
  }
}

/** The server rejects the write if the taint is no longer at the position that was shown. */
export function backInServiceWrite(node: TaintedNode) {
  const index = node.taints.findIndex(({ key }) => key === OUT_OF_SERVICE)
  return {
    method: 'PATCH',
    path: pathOf(node),
    contentType: JSON_PATCH,
    body: [
      { op: 'test', path: `/spec/taints/${index}/key`, value: OUT_OF_SERVICE },
      { op: 'remove', path: `/spec/taints/${index}` },
    ],
    command: `kubectl taint nodes ${node.name} ${OUT_OF_SERVICE}-`,
  }
}

export const isOutOfService = ({ taints }: TaintedNode): boolean => taints.some(({ key }) => key === OUT_OF_SERVICE)

/** Returns why the node cannot be marked as out of service, or put back in service if it is marked; undefined if it can. */
export function explainRefusal(node: NodeRow, mayPatch: boolean | undefined): string | undefined {
  if (mayPatch === undefined) return 'Your permissions are being checked.'
  if (!mayPatch) return 'You need permission to patch nodes.'
  if (node.ready === 'True' && !isOutOfService(node))
    return 'The node is ready. Marking it would detach volumes that its pods are writing to, and damage their data.'
  return undefined
}
