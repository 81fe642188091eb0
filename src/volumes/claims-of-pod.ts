// The claims a pod names, as `namespace/name`; also those that are made from the pod's own templates.
import type { Pod } from '../api/kinds/pod/pod-schema.ts'

export function claimsOfPod({ metadata, spec }: Readonly<Pod>): string[] {
  const names = (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return [persistentVolumeClaim.claimName]
    return ephemeral ? [`${metadata.name}-${name}`] : []
  })
  return names.map((name) => `${metadata.namespace}/${name}`)
}
