// Builds the pod for an ordinal from a revision's template, and its claims from the claim templates. Pure.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { claimNameOf, identityLabels, podNameOf, REVISION_LABEL, setReference } from './identity.ts'
import type { Revision } from './revisions.ts'

export function buildPod(set: Readonly<Stored<StatefulSet>>, { name, template }: Revision, ordinal: number): Pod {
  const podName = podNameOf(set, ordinal)
  const { labels, annotations, finalizers } = template.metadata ?? {}
  const { serviceName } = set.spec ?? {}
  const { subdomain: _, volumes = [], ...spec } = template.spec
  const claimVolumes = claimTemplatesOf(set).map(({ metadata }) => ({
    name: metadata.name ?? '',
    persistentVolumeClaim: { claimName: claimNameOf(metadata.name ?? '', set, ordinal) },
  }))
  const claimNames = new Set(claimVolumes.map((volume) => volume.name))
  const allVolumes = [...claimVolumes, ...volumes.filter((volume) => !claimNames.has(volume.name))]
  return {
    metadata: {
      name: podName,
      generateName: `${set.metadata.name}-`,
      namespace: set.metadata.namespace,
      labels: { ...labels, ...identityLabels(podName, ordinal), [REVISION_LABEL]: name },
      ...(annotations ? { annotations } : {}),
      ...(finalizers ? { finalizers } : {}),
      ownerReferences: [setReference(set)],
    },
    spec: {
      ...spec,
      hostname: podName,
      ...(serviceName ? { subdomain: serviceName } : {}),
      ...(allVolumes.length > 0 ? { volumes: allVolumes } : {}),
    },
  }
}

/** Builds the claims of an ordinal. plan-claim-owners.ts determines their owners. */
export function buildClaims(set: Readonly<StatefulSet>, ordinal: number): PersistentVolumeClaim[] {
  const { matchLabels } = set.spec?.selector ?? {}
  return claimTemplatesOf(set).map(({ metadata, spec }) => {
    const { name = '', labels, annotations, finalizers } = metadata
    return {
      metadata: {
        name: claimNameOf(name, set, ordinal),
        namespace: set.metadata.namespace,
        ...(labels || matchLabels ? { labels: { ...labels, ...matchLabels } } : {}),
        ...(annotations ? { annotations } : {}),
        ...(finalizers ? { finalizers } : {}),
      },
      spec,
    }
  })
}

const claimTemplatesOf = ({ spec }: Readonly<StatefulSet>) => spec?.volumeClaimTemplates ?? []
