// Collects the objects of a simulation that are rejected, and diagnoses the first pod with each message as `stowage why` does.
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import type { Cluster, StoredPod } from '../cluster.ts'
import type { Diagnosis } from '../diagnosis.ts'
import { diagnosePod } from '../pod.ts'
import type { NewObjects } from './new-objects.ts'
import type { RejectedObject } from './result.ts'

/** Pods with further messages have no diagnosis, because each diagnosis evaluates the pod on every node. */
const DIAGNOSES_MAX = 20

interface Rejections {
  readonly list: readonly RejectedObject[]
  /** `message` is the scheduler's message. Diagnoses the pod in the state after all placements so far. */
  add(pod: StoredPod, message: string): void
}

/** Begins with the objects that admission rejected. */
export function createRejections({ rejected, rejectedClaims }: NewObjects, cluster: Cluster): Rejections {
  const list = [...rejected]
  const messages = new Set<string>()

  function diagnose(pod: StoredPod): Diagnosis {
    const diagnosis = diagnosePod(pod, cluster)
    // The claims were rejected before the pod, so their diagnoses are the causes of its rejection.
    const causes = claimsOfPod(pod)
      .flatMap((key) => rejectedClaims.get(key) ?? [])
      .map(withoutChildren)
    return causes.length > 0 ? { ...diagnosis, children: causes } : diagnosis
  }

  return {
    list,
    add(pod, message) {
      const { namespace = '', name } = pod.metadata
      const isNew = messages.size < DIAGNOSES_MAX && !messages.has(message)
      if (isNew) messages.add(message)
      list.push({ kind: 'Pod', namespace, name, message, ...(isNew ? { diagnosis: diagnose(pod) } : {}) })
    },
  }
}

const withoutChildren = ({ children: _, ...diagnosis }: Diagnosis): Diagnosis => diagnosis
