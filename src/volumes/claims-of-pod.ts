// Returns the keys (`NAMESPACE/NAME`) of the claims that a pod uses, including the claims of its ephemeral volumes.
import type { Pod } from '../api/kinds/pod/pod-schema.ts'

export function claimsOfPod({ metadata, spec }: Readonly<Pod>): string[] {
  const names = (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return [persistentVolumeClaim.claimName]
    return ephemeral ? [`${metadata.name}-${name}`] : []
  })
  return names.map((name) => `${metadata.namespace}/${name}`)
}
