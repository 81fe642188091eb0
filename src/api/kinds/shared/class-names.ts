// Returns the storage class of a claim or volume. Two deprecated annotations are read in addition to the field: the beta
// annotation overrides the field, and the alpha annotation applies if neither is set.
import type { PersistentVolumeClaim } from '../claim/claim-schema.ts'
import type { PersistentVolume } from '../volume/volume-schema.ts'

export const BETA_CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'
export const ALPHA_CLASS_ANNOTATION = 'volume.alpha.kubernetes.io/storage-class'
export const BETA_CLASS_WARNING = `metadata.annotations[${BETA_CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead`

/** Returns undefined if the claim has no class, and '' if it explicitly requests no class. */
export const claimClassName = (claim: PersistentVolumeClaim): string | undefined =>
  annotationOf(claim, BETA_CLASS_ANNOTATION) ??
  claim.spec?.storageClassName ??
  annotationOf(claim, ALPHA_CLASS_ANNOTATION)

export const volumeClassName = (volume: PersistentVolume): string =>
  annotationOf(volume, BETA_CLASS_ANNOTATION) ??
  volume.spec?.storageClassName ??
  annotationOf(volume, ALPHA_CLASS_ANNOTATION) ??
  ''

export const annotationOf = (
  object: { readonly metadata: { readonly annotations?: Record<string, string> } },
  name: string,
): string | undefined => {
  const annotations = object.metadata.annotations
  return annotations && Object.hasOwn(annotations, name) ? annotations[name] : undefined
}
