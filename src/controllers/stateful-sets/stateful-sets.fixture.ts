// Builders of stateful sets, pods, claims and revisions for the unit tests of this folder.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { setStatefulSetDefaults } from '../../api/kinds/stateful-set/stateful-set-defaults.ts'
import type { StatefulSet, StatefulSetSpec } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { claimNameOf, identityLabels, REVISION_LABEL, setReference } from './identity.ts'
import type { SetSituation } from './plan-set.ts'
import type { Revision } from './revisions.ts'

export const NOW_MS = Date.parse('2026-01-02T03:04:05Z')

export type StoredSet = Stored<StatefulSet>
export type StoredPod = Stored<Pod>
export type StoredClaim = Stored<PersistentVolumeClaim>

const identity = (name: string, uid: string) => ({ name, uid, namespace: 'default', resourceVersion: '1' })

export function createSet(spec: Partial<StatefulSetSpec> = {}, status: Partial<StatefulSet['status']> = {}): StoredSet {
  const set: StoredSet = {
    metadata: { ...identity('web', 'set-uid'), generation: 1 },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'v1' }] } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
      ...spec,
    },
    status: { replicas: 0, ...status },
  }
  setStatefulSetDefaults(set)
  return set
}

const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'main', image }] },
})

export const OLD: Revision = { name: 'web-old', template: template('v1') }
export const NEW: Revision = { name: 'web-new', template: template('v2') }

/** The state of a pod in a test. */
export interface PodSketch {
  readonly state?: 'pending' | 'running' | 'ready' | 'failed'
  readonly isTerminating?: boolean
  readonly revision?: string
  readonly readySeconds?: number
  readonly uid?: string
}

export function createPod(set: StoredSet, ordinal: number, sketch: PodSketch = {}): StoredPod {
  const { state = 'ready', isTerminating = false, revision = OLD.name, readySeconds = 3_600 } = sketch
  const name = `${set.metadata.name}-${ordinal}`
  const phase = { pending: 'Pending', running: 'Running', ready: 'Running', failed: 'Failed' }[state] as 'Pending'
  const lastTransitionTime = new Date(NOW_MS - readySeconds * 1_000).toISOString()
  return {
    metadata: {
      ...identity(name, sketch.uid ?? `${name}-uid`),
      labels: { app: 'web', ...identityLabels(name, ordinal), [REVISION_LABEL]: revision },
      ownerReferences: [setReference(set)],
      ...(isTerminating ? { deletionTimestamp: new Date(NOW_MS).toISOString() } : {}),
    },
    status: { phase, conditions: state === 'ready' ? [{ type: 'Ready', status: 'True', lastTransitionTime }] : [] },
  }
}

export const createClaim = (
  set: StoredSet,
  ordinal: number,
  ownerReferences: OwnerReference[] = [],
  metadata: object = {},
): StoredClaim => ({
  metadata: {
    ...identity(claimNameOf('data', set, ordinal), `claim-${ordinal}`),
    ...(ownerReferences.length > 0 ? { ownerReferences } : {}),
    ...metadata,
  },
})

/** Returns a situation in which each pod has its claim, with the owner that the policy Retain requires. */
export function createSituation(
  set: StoredSet,
  pods: readonly StoredPod[],
  options: Partial<SetSituation> & { readonly claims?: readonly StoredClaim[] } = {},
): SetSituation {
  const claims =
    options.claims ??
    pods.map((pod) => createClaim(set, Number(pod.metadata.name.slice(pod.metadata.name.lastIndexOf('-') + 1))))
  const claimsByName = new Map(claims.map((claim) => [claim.metadata.name, claim]))
  return {
    set,
    currentRevision: OLD,
    updateRevision: OLD,
    pods,
    isOccupied: () => false,
    findClaim: (name) => claimsByName.get(name),
    nowMs: NOW_MS,
    ...options,
  }
}
