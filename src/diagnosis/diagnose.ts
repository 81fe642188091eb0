// Diagnoses an object of a snapshot. Pure: the same snapshot and object give the same tree.
import { diagnoseClaim } from './claim.ts'
import { createCluster } from './cluster.ts'
import type { Diagnosis } from './diagnosis.ts'
import { diagnoseMissingClaim } from './missing-claim.ts'
import { diagnoseNode } from './node.ts'
import { diagnosePod } from './pod.ts'
import { findSimilarNames } from './similar-names.ts'
import type { Snapshot } from './snapshot.ts'
import { diagnoseVolume } from './volume.ts'

/** The kinds with a diagnosis, by their names on the command line. */
export const TARGET_KINDS = {
  pvc: { list: 'claims', isNamespaced: true, names: ['pvc', 'persistentvolumeclaim', 'persistentvolumeclaims'] },
  pod: { list: 'pods', isNamespaced: true, names: ['pod', 'pods', 'po'] },
  pv: { list: 'volumes', isNamespaced: false, names: ['pv', 'persistentvolume', 'persistentvolumes'] },
  node: { list: 'nodes', isNamespaced: false, names: ['node', 'nodes', 'no'] },
} as const

export type TargetKind = keyof typeof TARGET_KINDS

export interface Target {
  readonly kind: TargetKind
  /** Absent for a volume or node. */
  readonly namespace?: string
  readonly name: string
}

export type DiagnoseResult =
  | { readonly is: 'diagnosed'; readonly diagnosis: Diagnosis }
  /** `similarNames` are names of existing objects of the kind. */
  | { readonly is: 'not found'; readonly similarNames: readonly string[] }
  /** `rules` are the permissions that the user lacks to read the object. */
  | { readonly is: 'forbidden'; readonly rules: readonly string[] }

export function diagnose(snapshot: Snapshot, { kind, namespace, name }: Target): DiagnoseResult {
  const cluster = createCluster(snapshot)
  const { list } = TARGET_KINDS[kind]
  const ref = { ...(namespace === undefined ? {} : { namespace }), name }
  const found = diagnoseExisting()
  if (found) return { is: 'diagnosed', diagnosis: addMissingRules(found, snapshot) }
  if (kind === 'pvc') {
    const pods = cluster.podsUsing(`${namespace}/${name}`)
    if (pods.length > 0) {
      const subject = { kind: 'PersistentVolumeClaim', namespace: namespace ?? '', name }
      return { is: 'diagnosed', diagnosis: addMissingRules(diagnoseMissingClaim(subject, pods, cluster), snapshot) }
    }
  }
  const candidates = cluster.caches[list].list(namespace)
  const rules = snapshot.missingRules.filter((missing) => missing.list === list && !missing.isPartial)
  if (rules.length > 0 && candidates.length === 0) return { is: 'forbidden', rules: rules.map(({ rule }) => rule) }
  const names = candidates.map(({ metadata }) => metadata.name)
  return { is: 'not found', similarNames: findSimilarNames(name, names) }

  function diagnoseExisting(): Diagnosis | undefined {
    const { caches } = cluster
    switch (kind) {
      case 'pvc': {
        const claim = caches.claims.get(ref)
        return claim && diagnoseClaim(claim, cluster)
      }
      case 'pod': {
        const pod = caches.pods.get(ref)
        return pod && diagnosePod(pod, cluster)
      }
      case 'pv': {
        const volume = caches.volumes.get(ref)
        return volume && diagnoseVolume(volume, cluster)
      }
      case 'node': {
        const node = caches.nodes.get(ref)
        return node && diagnoseNode(node, cluster)
      }
    }
  }
}

/** Unless the object is ready, adds the missing permissions that no cause names: the unread lists may contain other causes. */
function addMissingRules(diagnosis: Diagnosis, { missingRules }: Snapshot): Diagnosis {
  const rules = missingRules.map(({ rule }) => rule).filter((rule) => !namesRule(diagnosis, rule))
  if (diagnosis.state === 'ready' || rules.length === 0) return diagnosis
  const message = `there may be other causes; finding them requires permission to ${rules.join(', ')}`
  const { subject, children = [] } = diagnosis
  return { ...diagnosis, children: [...children, { subject, state: 'unknown', reason: 'MissingRights', message }] }
}

const namesRule = ({ reason, message, children = [] }: Diagnosis, rule: string): boolean =>
  (reason === 'MissingRights' && message.includes(rule)) || children.some((child) => namesRule(child, rule))
