// Diagnoses an unbound claim that names its volume in spec.volumeName: the volume does not exist, or cannot be bound to the
// claim.
import type { Cluster } from './cluster.ts'
import { type Diagnosis, fix } from './diagnosis.ts'
import { findSimilarNames } from './similar-names.ts'

/** `message` explains why the binding controller does not bind the volume. */
export function diagnoseNamedVolume(
  subject: Diagnosis['subject'],
  { volumeName, message, reason }: { readonly volumeName: string; readonly message: string; readonly reason: string },
  cluster: Cluster,
): Diagnosis {
  const command = `kubectl -n ${subject.namespace} delete pvc ${subject.name}`
  if (cluster.caches.volumes.get(volumeName)) {
    const fixes = [
      fix('compare the volume with the claim', `kubectl describe pv ${volumeName}`),
      fix('or recreate the claim, which is bound to no volume, with a spec that the volume matches', command),
    ]
    return { subject, state: 'failed', reason, message, fixes }
  }
  const names = cluster.snapshot.volumes.map(({ metadata }) => metadata.name)
  const similarNames = findSimilarNames(volumeName, names)
  const hint = similarNames.length > 0 ? `; similar names: ${similarNames.join(', ')}` : ''
  return {
    subject,
    state: 'failed',
    reason: 'VolumeNotFound',
    message: `the volume ${JSON.stringify(volumeName)}, which the claim names in spec.volumeName, does not exist${hint}`,
    fixes: [
      fix(`create the volume ${volumeName}`),
      fix('or recreate the claim, which is bound to no volume, with another spec.volumeName or none', command),
    ],
  }
}
