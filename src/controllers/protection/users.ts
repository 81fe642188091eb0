// Who uses what: the claims a pod names, and the attributes classes a claim has to do with.
import type { PersistentVolumeClaim } from '../../api/types/claim.ts'
import type { Pod } from '../../api/types/pod.ts'

/** As `namespace/name`; also those made from the pod's own templates. */
export function claimsOf({ metadata, spec }: Readonly<Pod>): string[] {
  const names = (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return [persistentVolumeClaim.claimName]
    return ephemeral ? [`${metadata.name}-${name}`] : []
  })
  return names.map((name) => `${metadata.namespace}/${name}`)
}

/** Whether a pod has no use for its volumes: it has ended, or no node has been given it yet. */
export const isDone = ({ spec, status }: Readonly<Pod>): boolean =>
  !spec?.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** The class asked for, the one in effect, and the one being moved to. */
export function attributesClassesOf({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => Boolean(name)))]
}
