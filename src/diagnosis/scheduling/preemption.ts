// Diagnoses preemption for a pod that fits on no node: preemption deletes pods of lower priority, waits for them, or cannot help.
import type { PostFilterResult } from '../../scheduler/index.ts'
import { type Cluster, podSubject, type StoredPod } from '../cluster.ts'
import { isBeingDeleted } from '../deletion.ts'
import { type Diagnosis, fix } from '../diagnosis.ts'

type PreemptionDiagnosis = Pick<Diagnosis, 'state' | 'reason'> & Partial<Pick<Diagnosis, 'fixes' | 'children'>>

/** Returns undefined if preemption cannot help on any node. */
export function diagnosePreemption(
  pod: StoredPod,
  preemption: PostFilterResult | undefined,
  cluster: Cluster,
): PreemptionDiagnosis | undefined {
  if (!preemption) return undefined
  switch (preemption.is) {
    case 'waiting':
      return { state: 'waiting', reason: 'WaitingForVictims', children: diagnoseVictims(pod, cluster) }
    case 'nominated': {
      const children = preemption.victims.map(({ pod: victim }): Diagnosis => {
        const message = `the pod has the lower priority ${victim.spec?.priority ?? 0}, so the scheduler deletes it to make room on ${preemption.nodeName}`
        return { subject: podSubject(victim as StoredPod), state: 'waiting', reason: 'PreemptionVictim', message }
      })
      return { state: 'waiting', reason: 'Preempting', children }
    }
    case 'rejected':
      return { state: 'failed', reason: 'NoNodeFits', ...explainPolicy(pod) }
  }
}

/** Returns the pods of lower priority that are leaving the node for which the pod is nominated. */
function diagnoseVictims(pod: StoredPod, { snapshot }: Cluster): Diagnosis[] {
  const { nominatedNodeName } = pod.status ?? {}
  const isVictim = (other: StoredPod) =>
    other.spec?.nodeName === nominatedNodeName &&
    isBeingDeleted(other) &&
    (other.spec?.priority ?? 0) < (pod.spec?.priority ?? 0)
  return snapshot.pods.filter(isVictim).map((victim) => ({
    subject: podSubject(victim),
    state: 'waiting',
    reason: 'Terminating',
    message: `the pod was preempted, and has not left ${nominatedNodeName} yet`,
    fixes: [
      fix(
        'see what delays the termination of the pod',
        `stowage why pod/${victim.metadata.name} -n ${victim.metadata.namespace}`,
      ),
    ],
  }))
}

function explainPolicy({ spec }: StoredPod): Partial<PreemptionDiagnosis> {
  if (spec?.preemptionPolicy !== 'Never') return {}
  const text =
    'the class of the pod has preemptionPolicy Never: recreate the pod with a class that may preempt other pods'
  return { fixes: [fix(text, 'kubectl get priorityclasses')] }
}
