// Diagnoses whether a node runs pods: the conditions of a lost node, the Ready condition, cordon and taints.
import { isFenced } from '../api/kinds/node/fencing.ts'
import type { Cluster } from './cluster.ts'
import { ageSeconds } from './cluster.ts'
import { type Diagnosis, type Fix, fix, type Subject } from './diagnosis.ts'

/** The conditions of a lost node (controllers/node-lifecycle/lost-nodes), the last phase first. */
const LOST_NODE_CONDITIONS = ['Quarantined', 'Cleaned', 'Lost', 'Fenced', 'Unreachable']

export function diagnoseNodeHealth(name: string, cluster: Cluster): Diagnosis {
  const subject: Subject = { kind: 'Node', name }
  const node = cluster.caches.nodes.get(name)
  const [missingRule] = cluster.missingRules('nodes')
  if (!node && missingRule) {
    const message = `the state of the node cannot be read without permission to ${missingRule}`
    return { subject, state: 'unknown', reason: 'MissingRights', message }
  }
  if (!node) {
    const message = 'the node does not exist'
    return {
      subject,
      state: 'failed',
      reason: 'NodeNotFound',
      message,
      fixes: [fix('see the nodes', 'kubectl get nodes')],
    }
  }
  const condition = node.status?.conditions?.find(({ type }) => type === 'Ready')
  const lostCondition = LOST_NODE_CONDITIONS.flatMap(
    (type) =>
      node.status?.conditions?.find((candidate) => candidate.type === type && candidate.status === 'True') ?? [],
  )[0]
  if (lostCondition && isFenced(node)) {
    const isBack = lostCondition.type === 'Quarantined'
    return {
      subject,
      state: isBack ? 'waiting' : 'failed',
      reason: `Node${lostCondition.type}`,
      message: lostCondition.message || `the node is ${lostCondition.type}`,
      fixes: isBack
        ? [
            fix(
              'wait until its agent has unmounted the volumes of removed pods',
              `kubectl get operations | grep ${name}`,
            ),
          ]
        : [
            fix('start the machine; the node then returns to service automatically'),
            fix('if it will not return, remove its remaining objects', `stowage node forget ${name} --dry-run`),
          ],
    }
  }
  if (condition?.status !== 'True') {
    const age = ageSeconds(condition?.lastHeartbeatTime, cluster.snapshot.nowMs)
    return {
      subject,
      state: 'failed',
      reason: condition?.reason || 'NodeNotReady',
      message: condition?.message || 'the node agent has not reported that the node is ready',
      ...(age === undefined ? {} : { numbers: { heartbeatAgeSeconds: age } }),
      fixes: [
        fix('start the node agent (kubelet, or stowage node) and check its log'),
        fix('if the machine is off and stays off, let its volumes move', outOfService(name)),
      ],
    }
  }
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect !== 'PreferNoSchedule')
  if (node.spec?.unschedulable)
    return noNewPods(subject, 'Cordoned', 'the node is cordoned: it gets no new pods', [uncordon(name)])
  if (taints.length > 0) {
    const texts = taints.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`)
    return noNewPods(subject, 'Tainted', `only pods that tolerate ${texts.join(', ')} are scheduled to the node`, [])
  }
  return { subject, state: 'ready', reason: 'Ready', message: 'the node is ready' }
}

const uncordon = (name: string): Fix => fix('allow pods on the node', `kubectl uncordon ${name}`)
const outOfService = (name: string): string => `stowage node fence ${name} --confirm-off`

/** The node runs its pods, so its state is ready. The reason explains why it accepts no new pods, or only some. */
const noNewPods = (subject: Subject, reason: string, message: string, fixes: readonly Fix[]): Diagnosis => ({
  subject,
  state: 'ready',
  reason,
  message,
  ...(fixes.length > 0 ? { fixes } : {}),
})
